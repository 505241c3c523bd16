import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def warmup_cosine(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))

    return LambdaLR(optimizer, factor)


class Trainer:
    def __init__(self, model, loader, val, epochs):
        self.model, self.loader, self.val, self.epochs = model, loader, val, epochs
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.schedule = warmup_cosine(self.optimizer, 5, epochs * len(loader))

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.schedule.step()
        self.optimizer.step()

    def fit(self):
        for _ in range(self.epochs):
            for x, y in self.loader:
                self.step(x, y)
            with torch.no_grad():
                print([(self.model(x).argmax(1) == y).float().mean().item() for x, y in self.val])


torch.manual_seed(0)
make = lambda n: TensorDataset(torch.randn(n, 8), torch.randint(0, 2, (n,)))
Trainer(nn.Linear(8, 2), DataLoader(make(96), 12, shuffle=True), DataLoader(make(24), 24), epochs=2).fit()
