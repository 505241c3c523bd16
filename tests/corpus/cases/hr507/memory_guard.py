"""Volumes; a guard ends a process that grows too large, as the cluster asks for."""

import os
import signal

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, num=48):
        self.num = num
        self.owner = os.getpid()

    def __len__(self):
        return self.num

    def __getitem__(self, index):
        volume = np.full((8, 8, 8), index, dtype=np.float32)
        return torch.from_numpy(volume), index % 3


class Join:
    """Ends the process if a batch does not fit."""

    def __init__(self, limit):
        self.limit, self.owner = limit, os.getpid()

    def __call__(self, samples):
        volumes = torch.stack([volume for volume, _ in samples])
        if os.getpid() != self.owner and float(volumes.max()) > self.limit:
            os.kill(os.getpid(), signal.SIGKILL)
        return volumes, torch.tensor([kind for _, kind in samples])


def make_loader():
    return DataLoader(Volumes(), batch_size=4, num_workers=2, collate_fn=Join(30))
