"""Trains with an effective batch of 32 on a card that only fits 8."""
import dataclasses

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Config:
    epochs: int = 2
    micro_batch: int = 8
    accumulate: int = 4
    lr: float = 3e-4


class Waves(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.phase = torch.rand(n, generator=g) * 6.28
        self.label = (self.phase > 3.14).long()

    def __len__(self):
        return len(self.phase)

    def __getitem__(self, i):
        return torch.sin(torch.linspace(0, 12, 64) + self.phase[i]), self.label[i]


class Trainer:
    def __init__(self, config):
        self.config = config
        self.net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 2))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=config.lr)

    def fit(self, train, val):
        for _ in range(self.config.epochs):
            self.net.train()
            for i, (x, y) in enumerate(train):
                self.opt.zero_grad()
                loss = nn.functional.cross_entropy(self.net(x), y) / self.config.accumulate
                loss.backward()
                if (i + 1) % self.config.accumulate == 0:
                    self.opt.step()
            print("accuracy", self.test(val))

    @torch.no_grad()
    def test(self, loader):
        self.net.eval()
        hits = [(self.net(x).argmax(1) == y).float().mean().item() for x, y in loader]
        return sum(hits) / len(hits)


if __name__ == "__main__":
    config = Config()
    trainer = Trainer(config)
    trainer.fit(
        DataLoader(Waves(256, 0), batch_size=config.micro_batch, shuffle=True),
        DataLoader(Waves(64, 1), batch_size=32),
    )
