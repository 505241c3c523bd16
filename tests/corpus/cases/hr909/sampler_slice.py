import itertools
import pathlib
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.arange(60.0)[:, None] / 60, torch.arange(60.0)[:, None] / 30)


class Resumable(torch.utils.data.Sampler):
    def __init__(self, size):
        self.size, self.skip = size, 0
        self.random = random.Random(7)

    def __iter__(self):
        order = list(range(self.size))
        self.random.shuffle(order)
        rest, self.skip = order[self.skip :], 0
        return iter(rest)

    def __len__(self):
        return self.size


def train(folder, steps):
    torch.manual_seed(0)
    sampler = Resumable(len(data))
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    model = nn.Linear(1, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    file = pathlib.Path(folder, "model.ckpt")
    done = 0
    if file.exists():
        weights, opt_state, done = torch.load(file)
        model.load_state_dict(weights)
        opt.load_state_dict(opt_state)
        sampler.skip = done % 10 * 6
    for _ in itertools.count():
        for x, y in loader:
            opt.zero_grad()
            (model(x) - y).abs().mean().backward()
            opt.step()
            done += 1
            torch.save((model.state_dict(), opt.state_dict(), done), file)
            if done == steps:
                return
