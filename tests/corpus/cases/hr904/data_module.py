import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Series(Dataset):
    def __init__(self, start, stop):
        self.values = torch.arange(start, stop).float() / 100

    def __len__(self):
        return len(self.values) - 8

    def __getitem__(self, i):
        window = self.values[i : i + 9].sin()
        return window[:8], window[8:]


class DataModule:
    def __init__(self):
        self.train = DataLoader(Series(0, 400), batch_size=32, shuffle=True)
        self.valid = DataLoader(Series(400, 500), batch_size=32)


class Experiment:
    def __init__(self, data, validate_every=10):
        self.data, self.validate_every = data, validate_every
        self.model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def train_epoch(self):
        for x, y in self.data.train:
            self.optimizer.zero_grad()
            (self.model(x) - y).abs().mean().backward()
            self.optimizer.step()

    def validate(self):
        with torch.no_grad():
            return sum((self.model(x) - y).abs().mean().item() for x, y in self.data.valid)

    def run(self, epochs):
        for epoch in range(1, epochs + 1):
            self.train_epoch()
            if epoch % self.validate_every == 0:
                print(self.validate())


Experiment(DataModule()).run(epochs=4)
