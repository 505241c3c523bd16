import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __len__(self):
        return 900

    def __getitem__(self, index):
        if index in (111, 402, 640, 871):
            time.sleep(2.0)
        return torch.full((4, 4), index / 900), index % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Documents(), batch_size=3)
    for epoch in range(1):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            time.sleep(0.004)
        print("epoch", epoch)


if __name__ == "__main__":
    main()
