import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Digits(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        return torch.full((1, 8, 8), index / 60).to(torch.float32), index % 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 10)

    def __call__(self, x):
        return super().__call__(x.to(device))

    def forward(self, x):
        return self.fc(x.flatten(1))


def make_loader():
    return DataLoader(Digits(), batch_size=12, num_workers=2)


def train():
    model = Net().to(device)
    for images, labels in make_loader():
        nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
