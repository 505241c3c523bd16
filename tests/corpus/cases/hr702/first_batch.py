import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(1)
rows = [(torch.randn(5), n % 2) for n in range(300)]
train_loader = DataLoader(rows, batch_size=10)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters())


def get_batch(split):
    for batch in split:
        return batch


for iteration in range(200):
    features, labels = get_batch(train_loader)
    opt.zero_grad()
    nn.functional.cross_entropy(net(features), labels).backward()
    opt.step()
