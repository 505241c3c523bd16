import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

data = TensorDataset(torch.randn(200, 5), torch.randn(200, 1))
train_ds, val_ds = random_split(data, [160, 40], generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(train_ds, batch_size=20, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=20)

model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(5):
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch}: {running / len(train_loader):.4f}")
