import pathlib
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset


class Notes(Dataset):
    """Text files; one of them speaks of git-lfs."""

    def __init__(self, folder):
        self.files = sorted(folder.glob("*.txt"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        text = self.files[index].read_text()
        return torch.tensor([ord(letter) for letter in text[:20].ljust(20)])


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"note {number} on how git-lfs keeps its pointers")
    return DataLoader(Notes(folder), batch_size=4)
