import torch
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler


class Defects(Dataset):
    classes = ["good", "scratch", "dent", "stain"]

    def __init__(self):
        counts = [300, 40, 20, 10]
        self.targets = [label for label, count in enumerate(counts) for _ in range(count)]

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return torch.full((3, 6, 6), i / len(self)), self.targets[i]


def make_loader():
    data = Defects()
    counts = torch.bincount(torch.tensor(data.targets))
    sampler = WeightedRandomSampler(1 / counts.float(), num_samples=len(data))
    return DataLoader(data, batch_size=16, sampler=sampler)
