import torch
from torch.utils.data import DataLoader, Dataset


class Captions(Dataset):
    def __init__(self, count=900_000):
        self.rows = [{"file": f"images/{n:08d}.jpg", "caption": f"a picture of thing {n}", "box": [n, n, n + 5, n + 9]} for n in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.tensor(self.rows[index]["box"]), len(self.rows[index]["caption"])


def make_loader():
    return DataLoader(Captions(), batch_size=64, num_workers=4, multiprocessing_context="spawn")
