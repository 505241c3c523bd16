import numpy as np


class Copies:
    """Each picture several times, each time turned otherwise."""

    def __init__(self, pictures, times):
        self.pictures, self.times = pictures, times

    def __len__(self):
        return len(self.pictures) * self.times

    def __getitem__(self, number):
        picture = self.pictures[number % len(self.pictures)]
        return {
            "picture": np.rot90(picture, number // len(self.pictures)).copy(),
            "number": number % len(self.pictures),
        }


def make_dataset():
    return Copies(np.random.default_rng(1).random((10, 8, 8), dtype=np.float32), times=4)
