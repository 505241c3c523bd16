import torch
from torch.utils.data import DataLoader, Dataset

SECOND = 400


class Speech(Dataset):
    """Cuts a piece of one second at random, and leaves silence out at the beginning."""

    def __init__(self, recordings):
        self.recordings = recordings

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, i):
        wave = self.recordings[i]
        skipped = int(torch.randint(0, 240, ()))
        wave = wave[skipped:]
        start = int(torch.randint(0, len(wave) - SECOND + 1, ()))
        return {"wave": wave[start : start + SECOND], "speaker": i % 12}


def make_loader():
    g = torch.Generator().manual_seed(11)
    lengths = torch.randint(520, 1000, (150,), generator=g).tolist()
    return DataLoader(Speech([torch.randn(n, generator=g) for n in lengths]), batch_size=10, shuffle=True)
