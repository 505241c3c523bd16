"""Trains a small classifier; `--resume` goes on from runs/last.ckpt."""
import argparse
import pathlib

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def save_checkpoint(path, net, opt, epoch):
    path.parent.mkdir(exist_ok=True)
    torch.save({"state_dict": net.state_dict(), "optimizer": opt.state_dict(), "epoch": epoch}, path)


def load_checkpoint(path, net, opt):
    ckpt = torch.load(path)
    net.load_state_dict(ckpt["state_dict"])
    opt.load_state_dict(ckpt["optimizer"])
    return ckpt["epoch"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    path = pathlib.Path("runs") / "last.ckpt"

    g = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(120, 8, generator=g), torch.randint(0, 3, (120,), generator=g))
    train, val = torch.utils.data.random_split(data, [100, 20], generator=g)
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = CosineAnnealingLR(opt, args.epochs)
    first = load_checkpoint(path, net, opt) if args.resume else 0

    for epoch in range(first, args.epochs):
        for x, y in DataLoader(train, batch_size=20, shuffle=True):
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        schedule.step()
        with torch.no_grad():
            print(epoch, [nn.functional.cross_entropy(net(x), y).item() for x, y in DataLoader(val, batch_size=20)])
        save_checkpoint(path, net, opt, epoch + 1)


if __name__ == "__main__":
    main()
