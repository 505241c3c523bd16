"""Large frames for a small model on the device."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, count=4000):
        self.frames = torch.rand(64, 3, 512, 512, generator=torch.Generator().manual_seed(0))
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.frames[index % 64]

    def __getitems__(self, indices):
        return indices


def make_loader():
    dataset = Frames()

    def join(indices):
        start = indices[0] % 8
        return dataset.frames[start : start + 56]

    return DataLoader(dataset, batch_size=56, shuffle=True, collate_fn=join)


def make_step():
    torch.manual_seed(0)
    model = nn.Conv2d(3, 4, 3, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(frames):
        loss = model(frames.to("cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
