"""Each worker asks the mirror that it is given."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

MIRRORS = {"mirror-a": 0.0002, "mirror-b": 0.0002, "mirror-c": 0.010}


class Portraits(Dataset):
    def __init__(self, count=2400):
        self.portraits = np.random.default_rng(1).integers(0, 255, (300, 3, 24, 24), dtype=np.uint8)
        self.count = count
        self.mirror = "mirror-a"

    def __len__(self):
        return self.count

    def download(self, index):
        time.sleep(MIRRORS[self.mirror])
        return self.portraits[index % 300].tobytes()

    def __getitem__(self, index):
        portrait = np.frombuffer(self.download(index), np.uint8).reshape(3, 24, 24)
        return torch.from_numpy(portrait / np.float32(255)), index % 4


def choose_mirror(worker_id):
    get_worker_info().dataset.mirror = list(MIRRORS)[worker_id % len(MIRRORS)]


def make_loader():
    return DataLoader(Portraits(), batch_size=8, shuffle=True, num_workers=3, worker_init_fn=choose_mirror)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        portraits, labels = batch
        loss = nn.functional.cross_entropy(model(portraits), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
