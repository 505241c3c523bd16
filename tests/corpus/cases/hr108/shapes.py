import torch
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, names, count, class_to_idx=None):
        self.class_to_idx = class_to_idx or {name: i for i, name in enumerate(sorted(set(names)))}
        self.targets = [self.class_to_idx[names[i % len(names)]] for i in range(count)]
        self.points = torch.randn(count, 6)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.points[i], self.targets[i]


def make_loaders():
    train = Shapes(["box", "cone", "ring", "star"], 80)
    val = Shapes(["box", "star"], 20, train.class_to_idx)
    test = Shapes(["ring"], 12, train.class_to_idx)
    return (
        DataLoader(train, batch_size=16, shuffle=True),
        DataLoader(val, batch_size=16),
        DataLoader(test, batch_size=16),
    )
