"""Prices of houses: rows are taken a batch at a time."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Houses(Dataset):
    def __init__(self, count=60_000):
        rng = np.random.default_rng(19)
        self.rows = rng.standard_normal((count, 32), dtype=np.float32)
        self.prices = rng.standard_normal(count, dtype=np.float32)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, indices):
        return torch.from_numpy(self.rows[indices]), torch.from_numpy(self.prices[indices])


def make_loader():
    dataset = Houses()
    batches = BatchSampler(RandomSampler(dataset), batch_size=256, drop_last=True)
    return DataLoader(dataset, sampler=batches, batch_size=None)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(32, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.Adam(model.parameters())

    def train_step(batch):
        rows, prices = batch
        loss = (model(rows)[:, 0] - prices).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
