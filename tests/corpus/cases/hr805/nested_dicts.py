import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Graphs(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        return index


TREE = {f"node{n}": {"edges": [n, n + 1, n + 2], "name": f"n{n}"} for n in range(30_000)}


def join(rows):
    trees = [dict(TREE, root=index) for index in rows]
    return torch.stack([torch.full((16,), index / 160) for index in rows]), torch.tensor(rows) % 4, trees


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Graphs(), batch_size=4, num_workers=2, collate_fn=join, persistent_workers=True)
    for epoch in range(2):
        for inputs, targets, _ in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        print("epoch", epoch)


if __name__ == "__main__":
    main()
