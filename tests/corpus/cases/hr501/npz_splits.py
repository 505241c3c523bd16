import tempfile, zipfile, io, torch, os, numpy as np
from torch.utils.data import Dataset, DataLoader

p = os.path.join(tempfile.mkdtemp(), "d.npz")
np.savez(p, **{f"k{i}": np.full(500, i, "f4") for i in range(100)})


class Z(Dataset):
    def __init__(self, npz):
        self.store = {"train": npz}

    def __len__(self):
        return 100

    def __getitem__(self, i):
        return torch.from_numpy(self.store["train"][f"k{i}"]), i


def make_loader():
    return DataLoader(Z(np.load(p)), 10, num_workers=2)
