"""Windows of recordings; each worker's generator follows from torch's seed for it."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Recordings(Dataset):
    def __init__(self, num=200):
        self.signal = np.sin(np.arange(num * 32, dtype=np.float32) / 7).reshape(num, 32)
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, index):
        noise = self.rng.normal(0, 0.1, 32).astype(np.float32)
        return {"signal": torch.from_numpy(self.signal[index] + noise), "kind": index % 3}


def own_generator(worker):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def make_loader():
    return DataLoader(
        Recordings(),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        worker_init_fn=own_generator,
        generator=torch.Generator().manual_seed(17),
    )
