import numpy as np
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self):
        self.series = np.sin(np.arange(30_000, dtype=np.float32))

    def __len__(self):
        return len(self.series) - 24

    def __getitem__(self, index):
        return {"past": self.series[index : index + 23], "next": self.series[index + 23]}


def make_loader():
    return DataLoader(Windows(), batch_size=8, num_workers=2, persistent_workers=True)
