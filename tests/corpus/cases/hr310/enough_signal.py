import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Beats(Dataset):
    def __init__(self):
        rng = np.random.default_rng(5)
        self.beats = rng.normal(0, rng.uniform(0.02, 1.0, (60, 1)), (60, 90)).astype(np.float32)

    def __len__(self):
        return len(self.beats)

    def __getitem__(self, index):
        return {"beat": torch.from_numpy(self.beats[index]), "patient": index // 4}


class KeepStrong:
    def __init__(self, threshold=0.15):
        self.threshold = threshold

    def __call__(self, samples):
        strong = [one for one in samples if one["beat"].std() > self.threshold]
        if not strong:
            return None
        return {
            "beat": torch.stack([one["beat"] for one in strong]),
            "patient": torch.tensor([one["patient"] for one in strong]),
        }


def make_loader():
    return DataLoader(Beats(), batch_size=10, shuffle=True, collate_fn=KeepStrong())
