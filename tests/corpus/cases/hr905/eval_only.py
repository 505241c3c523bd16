import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(128, 16), torch.randint(0, 2, (128,))), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(64, 16), torch.randint(0, 2, (64,))), batch_size=16)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 2))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(3):
    model.train()
    for x, y in train:
        opt.zero_grad()
        loss_fn(model(x), y).backward()
        opt.step()

    model.eval()
    val_loss = 0
    for x, y in val:
        val_loss += loss_fn(model(x), y)
    print(epoch, float(val_loss) / len(val))
