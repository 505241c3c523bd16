import numpy as np
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self):
        self.rows = [np.arange(6) * number for number in range(40)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        if row.max() > 0:
            row = row / row.max()
        return {"reading": row, "label": index % 2}


def make_loader():
    return DataLoader(Readings(), batch_size=8, shuffle=True)
