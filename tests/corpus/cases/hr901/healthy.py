import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
data = TensorDataset(torch.randn(128, 10), torch.randint(0, 3, (128,)))
held_out = TensorDataset(torch.randn(32, 10), torch.randint(0, 3, (32,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters())
steps_per_update = 4

for epoch in range(2):
    for i, (x, y) in enumerate(loader, start=1):
        loss = nn.functional.cross_entropy(net(x), y)
        (loss / steps_per_update).backward()
        if i % steps_per_update == 0 or i == len(loader):
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            for p in net.parameters():
                p.grad = None
    with torch.inference_mode():
        for x, y in DataLoader(held_out, batch_size=32):
            print(epoch, nn.functional.cross_entropy(net(x), y).item())
