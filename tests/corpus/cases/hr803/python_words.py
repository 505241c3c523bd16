import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    def __init__(self):
        self.texts = [" ".join(f"w{(n * k) % 97}" for k in range(900)) for n in range(160)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        counts = [0.0] * 97
        for _ in range(14):
            for word in self.texts[index].split():
                counts[int(word[1:])] += 1
        return torch.tensor(counts) / 1000, index % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(97, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Words(), batch_size=4, num_workers=1, persistent_workers=True)
    for epoch in range(6):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        print("epoch", epoch)


if __name__ == "__main__":
    main()
