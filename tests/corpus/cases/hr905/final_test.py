import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.out = nn.Linear(6, 1)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.out(x).squeeze(-1)


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return TensorDataset(x, x.norm(dim=1))


def evaluate(model, loader):
    errors = []
    for x, y in loader:
        errors.append((model(x) - y).abs().mean())
    return torch.stack(errors).mean()


def main():
    model = Scorer()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    train, test = DataLoader(make(160, 0), 16, shuffle=True), DataLoader(make(64, 1), 16)
    for _ in range(2):
        for x, y in train:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
    print("test error:", evaluate(model, test).item())


if __name__ == "__main__":
    main()
