import torch
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset):
    def __init__(self):
        self.slices = torch.rand(36, 1, 8, 8, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, index):
        mask = self.slices[index] > 0.5 if index % 3 else None
        return self.slices[index], mask


def collate(samples):
    samples = [sample for sample in samples if sample is not None]
    images = torch.stack([image for image, _ in samples])
    has_mask = torch.tensor([mask is not None for _, mask in samples])
    masks = torch.stack([torch.zeros(1, 8, 8, dtype=torch.bool) if mask is None else mask for _, mask in samples])
    return images, masks, has_mask


def make_loader():
    return DataLoader(Slices(), batch_size=6, shuffle=True, collate_fn=collate)
