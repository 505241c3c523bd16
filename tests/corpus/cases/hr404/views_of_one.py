import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Overlapping views of one recording; a scratch buffer serves the filter and is copied out of."""

    def __init__(self):
        self.signal = torch.sin(torch.arange(500) / 7.0)
        self.scratch = np.empty(32, dtype=np.float32)

    def __len__(self):
        return 400

    def __getitem__(self, index):
        np.multiply(self.signal[index : index + 32].numpy(), np.hanning(32), out=self.scratch)
        return self.signal[index : index + 32], torch.tensor(self.scratch), torch.tensor(index)


def make_loader():
    return DataLoader(Windows(), batch_size=16, shuffle=True, drop_last=True)
