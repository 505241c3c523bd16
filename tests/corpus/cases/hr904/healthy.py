import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# The held-out samples fit in one tensor: no second loader.
torch.manual_seed(0)
x = torch.randn(220, 4)
y = x[:, :1] * 2 - x[:, 1:2]
loader = DataLoader(TensorDataset(x[:200], y[:200]), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(4):
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(net(x[200:]), y[200:]).item())
