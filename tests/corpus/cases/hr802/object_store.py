import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Store(Dataset):
    """Objects behind a network: some milliseconds each."""

    def __len__(self):
        return 320

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.full((16,), index / 320), index % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Store(), batch_size=8, shuffle=True)
    for epoch in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        print("epoch", epoch)


if __name__ == "__main__":
    main()
