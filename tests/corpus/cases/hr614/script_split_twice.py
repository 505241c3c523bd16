import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Points(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(0)
        self.xy = torch.rand(150, 2, generator=g) * 2 - 1

    def __len__(self):
        return len(self.xy)

    def __getitem__(self, i):
        return self.xy[i], (self.xy[i].norm() < 0.8).long()


def loaders(data, share=0.8):
    cut = int(share * len(data))

    def part(train):
        order = torch.randperm(len(data)).tolist()
        return Subset(data, order[:cut] if train else order[cut:])

    return DataLoader(part(True), batch_size=12, shuffle=True), DataLoader(part(False), batch_size=15)


def main():
    train, test = loaders(Points())
    net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.3)
    for _ in range(3):
        for x, y in train:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        with torch.no_grad():
            print(sum((net(x).argmax(1) == y).sum().item() for x, y in test))


main()
