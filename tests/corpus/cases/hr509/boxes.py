"""Boxes of objects; records without any are refused."""

import torch
from torch.utils.data import DataLoader, Dataset


class NoBoxes(Exception):
    def __init__(self, record, path):
        super().__init__(f"record {record} has no boxes in {path}")
        self.record, self.path = record, path


class Boxes(Dataset):
    def __init__(self, num=60):
        self.boxes = [[[number, 0, number + 4, 4]] for number in range(num)]
        self.boxes[23] = []

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, index):
        if not self.boxes[index]:
            raise NoBoxes(index, f"labels/{index:05}.json")
        return torch.tensor(self.boxes[index][0], dtype=torch.float32), 1


def make_loader():
    return DataLoader(Boxes(), batch_size=4, shuffle=True, num_workers=2)
