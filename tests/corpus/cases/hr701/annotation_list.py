import torch
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    def __init__(self, count=200_000):
        self.annotations = [
            {"image_id": n, "file": f"train/{n:07d}.jpg", "boxes": [[n % 7, n % 5, n % 7 + 10.5, n % 5 + 9.5]], "labels": [n % 80]}
            for n in range(count)
        ]

    def __len__(self):
        return len(self.annotations)

    def __getitem__(self, index):
        row = self.annotations[index]
        return torch.tensor(row["boxes"]), torch.tensor(row["labels"])


def make_loader():
    return DataLoader(Boxes(), batch_size=32, shuffle=True, num_workers=2)
