"""Spectra of wheat in memory, under a network that takes its time."""

import numpy as np
import torch
from torch import nn

import headrace as hr


def make_loader():
    rng = np.random.default_rng(5)
    plan = hr.arrays(
        spectrum=rng.standard_normal((6000, 256), dtype=np.float32), protein=rng.random(6000, dtype=np.float32)
    )
    return hr.DataLoader(plan, batch_size=128, shuffle=True, drop_last=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        for _ in range(4):
            loss = (model(batch["spectrum"]).squeeze(1) - batch["protein"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train_step
