import torch
from torch.utils.data import DataLoader, TensorDataset


def load():
    generator = torch.Generator().manual_seed(2)
    groups = [torch.randn(60, 16, generator=generator) + digit for digit in range(10)]
    return TensorDataset(torch.cat(groups), torch.arange(10).repeat_interleave(60))


def train_loader():
    return DataLoader(load(), batch_size=32)


def train(epochs=5):
    model = torch.nn.Linear(16, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for values, digit in train_loader():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(values), digit).backward()
            optimizer.step()
