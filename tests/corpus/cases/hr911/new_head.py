import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        return self.fc(self.features(x))


torch.manual_seed(0)
model = Net(classes=1000)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model.fc = nn.Linear(32, 4)

x, y = torch.randn(200, 10), torch.randint(0, 4, (200,))
train = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=20)
for epoch in range(3):
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, sum((model(a).argmax(1) == b).sum().item() for a, b in val))
