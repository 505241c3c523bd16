import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def make_loader():
    rng = np.random.default_rng(0)
    churned = (rng.random(400) < 0.08).astype(np.int64)
    data = TensorDataset(torch.from_numpy(rng.normal(size=(400, 5)).astype(np.float32)), torch.from_numpy(churned))
    per_class = 1.0 / np.bincount(churned)
    weights = torch.from_numpy(per_class[churned])
    return DataLoader(data, batch_size=20, sampler=WeightedRandomSampler(weights, len(weights), replacement=False))
