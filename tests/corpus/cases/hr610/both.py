import os

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset


class Clips(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return {"clip": torch.full((3, 8), float(i)), "label": i % 4}


def make_loaders():
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    clips = Clips(255)
    train, test = Subset(clips, range(200)), Subset(clips, range(200, 255))
    return {
        "train": DataLoader(train, batch_size=20, sampler=DistributedSampler(train, world, rank)),
        "test": DataLoader(test, batch_size=20, sampler=DistributedSampler(test, world, rank, shuffle=False, drop_last=True)),
    }


def run(model, optimizer, epochs=3):
    loaders = make_loaders()
    for epoch in range(epochs):
        loaders["train"].sampler.set_epoch(epoch)
        for batch in loaders["train"]:
            optimizer.zero_grad()
            model(batch["clip"]).sum().backward()
            optimizer.step()
