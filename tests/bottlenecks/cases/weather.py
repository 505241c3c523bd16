"""Weather maps from the archive of the service, smoothed in the workers."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Maps(Dataset):
    def __init__(self, count=1600):
        self.maps = np.random.default_rng(15).random((16, 96, 96))
        self.count = count

    def __len__(self):
        return self.count

    def load(self, index):
        time.sleep(0.02)
        return self.maps[index % 16]

    def smooth(self, field):
        for _ in range(8):
            field = (field + np.roll(field, 1, 0) + np.roll(field, 1, 1)) / 3
        return field

    def __getitem__(self, index):
        return torch.from_numpy(self.smooth(self.load(index))).float()


def make_loader():
    return DataLoader(Maps(), batch_size=8, shuffle=True, num_workers=2)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(fields):
        fields = fields[:, None, ::4, ::4]
        loss = (model(fields) - fields).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
