import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.volumes = [rng.random((64, 64, 32), dtype=np.float32) for _ in range(200)]

    def __len__(self):
        return len(self.volumes)

    def __getitem__(self, index):
        return torch.from_numpy(self.volumes[index][None]), index % 2


def make_loader():
    return DataLoader(Volumes(), batch_size=2, num_workers=2, multiprocessing_context="forkserver")
