import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, index):
        return [index / 800 + place for place in range(60)], index % 4


def join(rows):
    table = np.zeros((len(rows), 60), np.float32)
    for _ in range(30):
        for line, (values, _) in enumerate(rows):
            for place, value in enumerate(values):
                table[line, place] = value
    return torch.from_numpy(table), torch.tensor([label for _, label in rows])


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(60, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Rows(), batch_size=16, shuffle=True, collate_fn=join)
    for epoch in range(15):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        print("epoch", epoch)


if __name__ == "__main__":
    main()
