import numpy as np
import torch
from patients import Patients
from torch.utils.data import DataLoader


class LongestFirst:
    """Puts the longest history first and fills the others up from the left."""

    def __call__(self, samples):
        samples = sorted(samples, key=lambda one: len(one["history"]), reverse=True)
        longest = len(samples[0]["history"])
        history = np.zeros((longest, len(samples), 3), dtype=np.float32)
        for column, one in enumerate(samples):
            history[longest - len(one["history"]) :, column] = one["history"]
        return {
            "history": torch.from_numpy(history),
            "outcome": torch.tensor([one["outcome"] for one in samples]),
        }


def make_loader():
    return DataLoader(Patients(), batch_size=6, shuffle=True, collate_fn=LongestFirst())
