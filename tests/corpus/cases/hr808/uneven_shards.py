import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


from torch.utils.data import IterableDataset, get_worker_info


class Shards(IterableDataset):
    """Two mirrors; the second one is far away."""

    def __iter__(self):
        info = get_worker_info()
        worker = 0 if info is None else info.id
        for number in range(400):
            time.sleep(0.03 if worker == 1 else 0.001)
            yield torch.full((16,), number / 400), number % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Shards(), batch_size=4, num_workers=2)
    for epoch in range(1):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            time.sleep(0.002)
        print("epoch", epoch)


if __name__ == "__main__":
    main()
