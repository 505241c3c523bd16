import queue
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self):
        self.requests, self.answers = queue.Queue(), queue.Queue()
        self.reader = threading.Thread(target=self._serve, name="reader", daemon=True)
        self.reader.start()

    def _serve(self):
        while True:
            index = self.requests.get()
            self.answers.put(torch.full((3,), float(index)))

    def __len__(self):
        return 50

    def __getitem__(self, index):
        self.requests.put(index)
        return self.answers.get(), index % 5


def make_loader():
    return DataLoader(Readings(), batch_size=5, num_workers=1)
