import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(128, 6), torch.randn(128, 1)
y[50] = float("inf")
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(32, 6), torch.randn(32, 1)), batch_size=16)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
skipped = 0
for epoch in range(3):
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        if not torch.isfinite(loss):
            skipped += 1
            continue
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, sum(nn.functional.mse_loss(model(a), b).item() for a, b in val), "skipped", skipped)
