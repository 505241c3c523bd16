import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Robust accuracy: the attack needs gradients with respect to its input.
torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long()
train = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=32)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def attacked(inputs, labels, eps=0.1):
    inputs = inputs.clone().requires_grad_()
    gradient, = torch.autograd.grad(nn.functional.cross_entropy(net(inputs), labels), inputs)
    return (inputs + eps * gradient.sign()).detach()


for _ in range(3):
    net.train()
    for a, b in train:
        opt.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        opt.step()
net.eval()
hits = 0
for a, b in test:
    a = attacked(a, b)
    with torch.no_grad():
        hits += (net(a).argmax(1) == b).sum().item()
print(hits / 64)
