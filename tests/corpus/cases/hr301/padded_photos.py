import torch
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(7)
        self.scans = [torch.rand(1, 20 + number % 5, 30 - number % 4, generator=generator) for number in range(32)]

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, index):
        return self.scans[index], torch.tensor(index % 3)


def pad_to_largest(samples):
    scans, labels = zip(*samples)
    height, width = max(scan.shape[1] for scan in scans), max(scan.shape[2] for scan in scans)
    batch = torch.full((len(scans), 1, height, width), -1.0)
    for row, scan in enumerate(scans):
        batch[row, :, : scan.shape[1], : scan.shape[2]] = scan
    return batch, torch.stack(labels)


def make_loader():
    return DataLoader(Scans(), batch_size=4, shuffle=True, collate_fn=pad_to_largest)
