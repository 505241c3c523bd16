import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split


class WithTransform(Dataset):
    def __init__(self, subset, transform):
        self.subset = subset
        self.transform = transform

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, i):
        values, target = self.subset[i]
        return self.transform(values), target


def noisy(values):
    return values + 0.1 * torch.randn_like(values)


def plain(values):
    return values * 1.0


def make_loaders():
    data = TensorDataset(torch.randn(100, 8), torch.arange(100) % 5)
    train, val = random_split(data, [80, 20])
    return (
        DataLoader(WithTransform(train, noisy), batch_size=10, shuffle=True),
        DataLoader(WithTransform(val, plain), batch_size=10),
    )
