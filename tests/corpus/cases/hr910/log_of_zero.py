import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(160, 6)
price = torch.rand(160, 1) * 5 + 1
price[77] = 0.0
val_x, val_price = torch.randn(32, 6), torch.rand(32, 1) + 1
loader = DataLoader(TensorDataset(x, price), batch_size=16)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

for epoch in range(2):
    for inputs, target in loader:
        optimizer.zero_grad()
        loss = (model(inputs) - target.log()).square().mean()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, (model(val_x) - val_price.log()).square().mean().item())
