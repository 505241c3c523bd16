import torch
from torch.utils.data import DataLoader


class Products:
    def __init__(self):
        self.vectors = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.vectors)

    def __getitem__(self, index):
        return {"vector": self.vectors[index], "note": None if index % 4 else f"note {index}"}


def collate(samples):
    return {"vector": torch.stack([one["vector"] for one in samples]), "notes": [one["note"] for one in samples]}


def make_loader():
    return DataLoader(Products(), batch_size=5, shuffle=True, collate_fn=collate)
