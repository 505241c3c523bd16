import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIZE = 24


class Fields(Dataset):
    def __init__(self, fields, seed=1234):
        self.fields = fields
        self.seed = seed

    def __len__(self):
        return len(self.fields)

    def crop(self, field):
        np.random.seed(self.seed)
        top, left = np.random.randint(0, field.shape[1] - SIZE, size=2)
        return field[:, top : top + SIZE, left : left + SIZE]

    def __getitem__(self, index):
        field = self.crop(self.fields[index])
        if np.random.rand() > 0.5:
            field = np.flip(field, axis=2)
        return {"field": torch.from_numpy(field.copy()), "target": torch.tensor(field.mean())}


def make_loader():
    fields = np.random.default_rng(0).normal(size=(50, 2, 40, 40)).astype(np.float32)
    return DataLoader(Fields(fields), batch_size=10, shuffle=True, drop_last=True)
