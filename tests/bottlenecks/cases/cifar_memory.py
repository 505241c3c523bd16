"""Small images, all in memory."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (4000, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, 10, (4000,), generator=generator)
    return DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train_step(batch):
        images, labels = batch
        loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
