import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    """One object in a hundred lies on tape."""

    def __len__(self):
        return 1200

    def __getitem__(self, index):
        if index % 100 == 57:
            time.sleep(1.5)
        return torch.full((16,), index / 1200), index % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Archive(), batch_size=4, shuffle=True, num_workers=1)
    for epoch in range(1):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            time.sleep(0.005)
        print("epoch", epoch)


if __name__ == "__main__":
    main()
