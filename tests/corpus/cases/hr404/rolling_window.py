import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Windows(IterableDataset):
    """Slides over a long recording; each window is the former one moved on by one step."""

    def __init__(self, length=400, width=32):
        self.signal = np.cos(np.arange(length) / 9.0).astype(np.float32)
        self.width = width

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        window = np.zeros(self.width, dtype=np.float32)
        for at in range(start, len(self.signal) - self.width, step):
            window[:] = self.signal[at : at + self.width]
            yield torch.from_numpy(window)


def make_loader():
    return DataLoader(Windows(), batch_size=None)
