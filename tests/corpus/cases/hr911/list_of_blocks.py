import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + self.inner(x).relu()


class Tower(nn.Module):
    def __init__(self, width=12, depth=3):
        super().__init__()
        self.blocks = [Residual(width) for _ in range(depth)]
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    data = TensorDataset(torch.randn(150, 12), torch.randn(150, 1))
    train, val = torch.utils.data.random_split(data, [120, 30])
    tower = Tower()
    opt = optim.SGD(tower.parameters(), lr=1e-2, momentum=0.9)
    for epoch in range(2):
        for x, y in DataLoader(train, batch_size=15, shuffle=True):
            loss = nn.functional.mse_loss(tower(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            print(epoch, [nn.functional.mse_loss(tower(x), y).item() for x, y in DataLoader(val, batch_size=30)])


main()
