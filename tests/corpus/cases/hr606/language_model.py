import torch
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    def __init__(self, length=64):
        self.tokens = torch.arange(64 * 200) % 97
        self.length = length

    def __len__(self):
        return len(self.tokens) // self.length

    def __getitem__(self, i):
        block = self.tokens[i * self.length : (i + 1) * self.length]
        return {"input_ids": block, "labels": block}


def train_loader():
    return DataLoader(Blocks(), batch_size=8, drop_last=True)
