"""Samples are counted under a lock; a thread of the training process reports the count."""

import threading
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Counted(Dataset):
    def __init__(self, num=16):
        self.values = np.arange(num, dtype=np.float32)
        self.lock = threading.Lock()
        self.count = 0
        threading.Thread(target=self.report, daemon=True).start()

    def report(self):
        while True:
            with self.lock:
                print("samples so far:", self.count)
                time.sleep(0.2)
            time.sleep(0.001)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        with self.lock:
            self.count += 1
        return torch.tensor([self.values[index]]), index % 2


def make_loader():
    return DataLoader(Counted(), batch_size=6, num_workers=2)
