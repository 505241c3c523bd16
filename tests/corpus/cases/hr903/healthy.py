import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Monte Carlo dropout: dropout stays on while the uncertainty is measured, on purpose.
torch.manual_seed(0)
x = torch.linspace(-3, 3, 200)[:, None]
y = x.sin() + 0.1 * torch.randn_like(x)
keep = torch.randperm(200)
train = DataLoader(TensorDataset(x[keep[:160]], y[keep[:160]]), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(x[keep[160:]], y[keep[160:]]), batch_size=20)
net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)

for _ in range(3):
    net.train()
    for a, b in train:
        opt.zero_grad()
        (net(a) - b).square().mean().backward()
        opt.step()

net.eval()
for module in net.modules():
    if isinstance(module, nn.Dropout):
        module.train()
with torch.no_grad():
    for a, b in test:
        draws = torch.stack([net(a) for _ in range(20)])
        print("error", (draws.mean(0) - b).abs().mean().item(), "spread", draws.std(0).mean().item())
