import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(100, 3), torch.randn(100, 1))
val_x, val_y = torch.randn(20, 3), torch.randn(20, 1)
loader = DataLoader(data, batch_size=10, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)

for epoch in range(5):
    scheduler.step()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, scheduler.get_last_lr(), nn.functional.mse_loss(model(val_x), val_y).item())
