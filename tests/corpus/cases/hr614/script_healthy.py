import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

# Three folds: what one validates on, the others train on.
torch.manual_seed(0)
data = TensorDataset(torch.randn(90, 5), torch.randn(90, 1))
folds = torch.randperm(90).chunk(3)
scores = []
for k in range(3):
    train_ids = torch.cat([fold for i, fold in enumerate(folds) if i != k]).tolist()
    train = DataLoader(Subset(data, train_ids), batch_size=15, shuffle=True)
    val = DataLoader(Subset(data, folds[k].tolist()), batch_size=15)
    model = nn.Linear(5, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for x, y in train:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
    with torch.no_grad():
        scores.append(sum(nn.functional.mse_loss(model(x), y).item() for x, y in val) / len(val))
print(scores)
