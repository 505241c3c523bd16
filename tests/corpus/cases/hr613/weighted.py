import torch
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler


def make_loader():
    targets = torch.tensor([0] * 240 + [1] * 40 + [2] * 20)
    data = TensorDataset(torch.arange(1200.0).reshape(300, 4), targets)
    part = Subset(data, range(0, 300, 2))
    own = targets[part.indices]
    weights = (1 / own.bincount().float())[own]
    return DataLoader(part, batch_size=10, sampler=WeightedRandomSampler(weights, num_samples=2 * len(part)))
