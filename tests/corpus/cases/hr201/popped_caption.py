import torch
from torch.utils.data import DataLoader, Dataset

VOCABULARY = ["a", "dog", "cat", "runs", "sleeps", "eats", "fast", "today"]


class Captions(Dataset):
    def __init__(self):
        self.entries = {
            f"img_{number:03d}": {
                "caption": [VOCABULARY[(number * step) % 8] for step in range(1, 6)],
                "feature": [float(number % 5), float(number % 3)],
                "split": "train",
            }
            for number in range(30)
        }
        self.keys = list(self.entries)

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        entry = self.entries[self.keys[index]]
        words = entry.pop("caption")
        entry["tokens"] = torch.tensor([VOCABULARY.index(word) for word in words])
        return torch.tensor(entry["feature"]), entry["tokens"]


def make_loader():
    return DataLoader(Captions(), batch_size=5, shuffle=True)
