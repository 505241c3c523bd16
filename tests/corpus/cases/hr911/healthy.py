import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# A linear probe: the encoder was trained before and is only read.
torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
pretrained = {name: value.clone() for name, value in encoder.state_dict().items()}
encoder.load_state_dict(pretrained)
probe = nn.Linear(32, 3)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)

x, y = torch.randn(150, 10), torch.randint(0, 3, (150,))
train = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=20, shuffle=True)
val = DataLoader(TensorDataset(x[120:], y[120:]), batch_size=30)
for epoch in range(3):
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(probe(encoder(a)), b).backward()
        optimizer.step()
    with torch.no_grad():
        for a, b in val:
            print(epoch, (probe(encoder(a)).argmax(1) == b).float().mean().item())
