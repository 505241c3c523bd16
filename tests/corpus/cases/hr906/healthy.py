import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(96, 4), torch.randint(0, 2, (96,))), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=16)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters())
best = float("inf")

for epoch in range(4):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss = sum(nn.functional.cross_entropy(model(x), y).item() for x, y in val)
    if loss < best:
        best = loss
        torch.save({"model": model.state_dict(), "epoch": epoch, "loss": loss}, "best.pt")

# The best weights are what gets tested and shipped.
saved = torch.load("best.pt")
model.load_state_dict(saved["model"])
print("best epoch", saved["epoch"], "loss", saved["loss"])
torch.save(model.state_dict(), "model.pt")
os.remove("best.pt")
