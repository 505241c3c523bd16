import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self, count, seed):
        self.data = torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index]


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.decoder = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, padding=1))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run_epoch(model, loader, optimizer=None):
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for images in loader:
            loss = (model(images) - images).pow(2).mean()
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    net = AutoEncoder()
    adam = optim.Adam(net.parameters())
    train, valid = DataLoader(Patches(96, 0), 16, shuffle=True), DataLoader(Patches(48, 1), 16)
    for epoch in range(args.epochs):
        print(epoch, run_epoch(net, train, adam), run_epoch(net, valid))
