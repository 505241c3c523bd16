"""Frames of reef surveys, kept in an archive across the network."""

import time

import numpy as np
import torch
from torch import nn

import headrace as hr

ROUND_TRIP_S = 0.012


class Surveys:
    def __init__(self, count=4000):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(ROUND_TRIP_S)
        frame = np.random.default_rng(index).integers(0, 256, (48, 48, 3), dtype=np.uint8)
        return {"frame": frame, "species": index % 12}


def normalise(sample):
    frame = torch.from_numpy(sample["frame"]).permute(2, 0, 1).float() / 255
    return {"frame": frame, "species": sample["species"]}


def make_loader():
    plan = hr.Plan.of(Surveys()).map(normalise)
    return hr.DataLoader(plan, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 23 * 23, 12))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        loss = nn.functional.cross_entropy(model(batch["frame"]), batch["species"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
