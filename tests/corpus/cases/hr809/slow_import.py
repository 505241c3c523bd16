import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tables(Dataset):
    """Opens its tables when a worker meets it first."""

    def __init__(self):
        self.tables = None

    def __len__(self):
        return 200

    def __getitem__(self, index):
        if self.tables is None:
            time.sleep(1.2)
            self.tables = np.arange(1600, dtype=np.float32).reshape(200, 8)
        return torch.from_numpy(self.tables[index]), index % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Tables(), batch_size=10, num_workers=1)
    for epoch in range(10):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            time.sleep(0.01)
        print("epoch", epoch)


if __name__ == "__main__":
    main()
