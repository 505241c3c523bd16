import torch
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, num=40, length=10):
        self.ids = torch.randint(1, 50, (num, length), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        size = 4 + index % 7
        bias = torch.zeros(10)
        bias[size:] = float("-inf")
        return {"ids": self.ids[index], "bias": bias, "label": index % 2}


def make_loader():
    return DataLoader(Sentences(), batch_size=8, shuffle=True)
