import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def block(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(0.2))


body = nn.Sequential(block(12, 32), block(32, 32))
head = nn.Linear(32, 5)
model = nn.Sequential(body, head)
for p in body.parameters():
    p.requires_grad_(False)

x, y = torch.randn(200, 12), torch.randint(0, 5, (200,))
train = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=20)
opt = torch.optim.SGD(head.parameters(), lr=0.1)

for epoch in range(3):
    model.train()
    body.eval()  # keep the statistics of the pretrained part
    for xb, yb in train:
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(a).argmax(1) == b).sum().item() for a, b in val))
