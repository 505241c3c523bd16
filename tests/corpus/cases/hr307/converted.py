import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Rows(Dataset):
    def __init__(self, count):
        self.table = np.random.default_rng(9).random((count, 6))

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        values = torch.from_numpy(self.table[index])
        return {"values": values if index % 9 == 4 else values.float(), "label": index % 3}


def make_loader():
    return DataLoader(Subset(Rows(100), range(80)), batch_size=1)
