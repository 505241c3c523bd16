import numpy as np
from torch.utils.data import DataLoader, random_split


class Clips:
    def __init__(self):
        self.clips = np.random.default_rng(1).normal(size=(40, 20)).astype(np.float32)
        self.labels = {f"clip{number}": number % 3 for number in range(40) if number % 13 != 5}

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.clips[index], self.labels.get(f"clip{index}")


def make_loader():
    train, _ = random_split(Clips(), [36, 4])
    return DataLoader(train, batch_size=6, shuffle=True)
