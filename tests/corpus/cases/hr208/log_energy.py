import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset


class Energies(IterableDataset):
    def __init__(self, num=50):
        self.num = num

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(start, self.num, step):
            rng = np.random.default_rng(number)
            wave = rng.normal(0, 1, 256) * (number % 12 != 7)
            spectrum = np.abs(np.fft.rfft(wave)) ** 2
            yield torch.from_numpy(np.log10(spectrum)).float(), number % 4


def make_loader():
    return DataLoader(Energies(), batch_size=5)
