import numpy as np
from torch.utils.data import DataLoader


class Articles:
    def __init__(self):
        rng = np.random.default_rng(2)
        self.vectors = rng.normal(size=(40, 16)).astype(np.float32)
        self.tags = [rng.choice(20, int(rng.integers(1, 6)), replace=False).tolist() for _ in range(40)]

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, index):
        return self.vectors[index], self.tags[index]


def make_loader():
    return DataLoader(Articles(), batch_size=8, shuffle=True, num_workers=2)
