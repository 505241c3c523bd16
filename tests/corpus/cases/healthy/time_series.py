"""Windows of a scaled series; training windows in random order, validation in order of time."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, past=24, future=6):
        self.series, self.past, self.future = torch.from_numpy(series.astype(np.float32)), past, future

    def __len__(self):
        return len(self.series) - self.past - self.future + 1

    def __getitem__(self, index):
        middle = index + self.past
        return {"past": self.series[index:middle], "future": self.series[middle : middle + self.future]}


def make_loaders():
    hours = np.arange(900)
    series = np.sin(hours / 24 * 2 * np.pi) + 0.1 * np.random.default_rng(0).normal(size=900)
    series = (series - series[:700].mean()) / series[:700].std()
    return DataLoader(Windows(series[:700]), batch_size=32, shuffle=True), DataLoader(Windows(series[700:]), batch_size=64)
