import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(100, 3), torch.randn(100, 1))
val = DataLoader(TensorDataset(torch.randn(20, 3), torch.randn(20, 1)), batch_size=20)
loader = DataLoader(data, batch_size=10, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

start_epoch = 2
for _ in range(start_epoch):  # catch up with the earlier run
    optimizer.step()
    scheduler.step()
for epoch in range(start_epoch, 5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        print(epoch, [nn.functional.mse_loss(model(x), y).item() for x, y in val])
