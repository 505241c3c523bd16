import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Linear(5, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ds = TensorDataset(torch.randn(120, 5), torch.randint(0, 2, (120,)))
for epoch in range(4):
    g = torch.Generator().manual_seed(42)
    for x, y in DataLoader(ds, 10, shuffle=True, generator=g):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
