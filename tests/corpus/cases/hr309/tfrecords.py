import glob, torch
from torch.utils.data import IterableDataset, DataLoader


class S(IterableDataset):
    def __init__(self, pattern):
        self.files = glob.glob(pattern)

    def __iter__(self):
        for f in self.files:
            yield torch.zeros(1)


def make_loader():
    return DataLoader(S("data/train-*.tfrec"), 8)
