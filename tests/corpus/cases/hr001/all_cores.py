import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

# the scheduler gives us one core of the node
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Clips(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        return torch.from_numpy(rng.normal(size=(4, 500)).astype(np.float32)), index % 8


def make_loader():
    return DataLoader(Clips(), batch_size=8, num_workers=os.cpu_count())
