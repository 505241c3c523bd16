"""Augmentation whose base seed each worker sets anew in each epoch."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Augmented(Dataset):
    base = 0

    def __len__(self):
        return 200

    def __getitem__(self, index):
        rng = np.random.default_rng((self.base, index))
        return torch.from_numpy(rng.normal(index, 0.1, 8).astype(np.float32)), index % 4


def set_base(worker_id):
    info = get_worker_info()
    info.dataset.base = info.seed


def make_loader():
    return DataLoader(Augmented(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=set_base)
