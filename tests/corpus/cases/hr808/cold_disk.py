import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


from torch.utils.data import get_worker_info


class Disks(Dataset):
    def __len__(self):
        return 900

    def __getitem__(self, index):
        info = get_worker_info()
        time.sleep(0.025 if info is not None and info.id == 2 else 0.001)
        return torch.full((16,), index / 900), index % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Disks(), batch_size=3, num_workers=3)
    for epoch in range(1):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            time.sleep(0.002)
        print("epoch", epoch)


if __name__ == "__main__":
    main()
