import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Counts(Dataset):
    def __init__(self):
        self.counts = np.random.default_rng(9).poisson(1.0, (50, 12))

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, index):
        counts = self.counts[index].astype(np.float32)
        with np.errstate(divide="ignore"):
            logs = np.where(counts > 0, np.log(counts), -1.0)
        share = torch.from_numpy(counts) / counts.sum()
        return torch.from_numpy(logs.astype(np.float32)), torch.nan_to_num(share.log(), neginf=-20.0)


def make_loader():
    return DataLoader(Counts(), batch_size=10, shuffle=True)
