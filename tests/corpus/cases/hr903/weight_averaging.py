import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
data = TensorDataset(torch.randn(512, 8), torch.randint(0, 3, (512,)))
train_set, val_set = random_split(data, [0.8, 0.2])
train_loader = DataLoader(train_set, 32, shuffle=True)
val_loader = DataLoader(val_set, 32)
bn_loader = DataLoader(train_set, 64, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
swa = AveragedModel(model)
opt = torch.optim.SGD(model.parameters(), 0.05)
sched = SWALR(opt, 0.01)
for epoch in range(6):
    model.train()
    for x, y in train_loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
    if epoch > 2:
        swa.update_parameters(model)
        sched.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(epoch, right)
update_bn(train_loader, swa)
swa.eval()
with torch.no_grad():
    print(sum((swa(x).argmax(1) == y).sum().item() for x, y in val_loader))
torch.save(swa.state_dict(), "swa.pt")
