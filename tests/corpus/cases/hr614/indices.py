import numpy as np
import torch
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset


def make_loaders():
    data = TensorDataset(torch.arange(800.0).reshape(400, 2), torch.arange(400) % 4)
    order = np.random.default_rng(0).permutation(400)
    return (
        DataLoader(data, batch_size=16, sampler=SubsetRandomSampler(order[:320].tolist())),
        DataLoader(data, batch_size=16, sampler=SubsetRandomSampler(order[320:].tolist())),
    )
