import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
features = torch.randn(300, 8)
labels = (features.sum(1) > 0).long()
train_loader = DataLoader(TensorDataset(features[:240], labels[:240]), batch_size=24, shuffle=True)
test_loader = DataLoader(TensorDataset(features[240:], labels[240:]), batch_size=20)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += (model(x).argmax(dim=1) == y).sum().item()
    print(f"epoch {epoch}: accuracy {hits / 60:.3f}")
