"""Imbalanced classes with a WeightedRandomSampler."""
import torch
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler


class Rare(Dataset):
    def __init__(self):
        self.targets = [0] * 180 + [1] * 20

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 8, 8, generator=generator) + self.targets[index], self.targets[index]


def make_loader():
    data = Rare()
    counts = torch.bincount(torch.tensor(data.targets))
    weights = [1.0 / counts[target].item() for target in data.targets]
    sampler = WeightedRandomSampler(weights, num_samples=len(data), replacement=True)
    return DataLoader(data, batch_size=20, sampler=sampler, num_workers=2)
