"""Clicks with a deep model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    generator = torch.Generator().manual_seed(20)
    rows = torch.randn(20_000, 64, generator=generator)
    clicked = torch.randint(0, 2, (20_000,), generator=generator)
    return DataLoader(TensorDataset(rows, clicked), batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        rows, clicked = batch
        for _ in range(6):
            loss = nn.functional.cross_entropy(model(rows), clicked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train_step
