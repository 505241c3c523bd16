import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Spectra(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(4)
        self.values = torch.randn(120, 32, generator=generator)
        self.targets = torch.arange(120) % 4
        self.transform = None

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        values = self.values[i]
        if self.transform is not None:
            values = self.transform(values)
        return {"values": values, "target": self.targets[i]}


def jitter(values):
    return values * (1 + 0.1 * torch.randn(()))


def normalise(values):
    return (values - values.mean()) / values.std()


def make_loaders():
    spectra = Spectra()
    train_set = Subset(spectra, range(0, 90))
    val_set = Subset(spectra, range(90, 120))
    train_set.dataset.transform = jitter
    val_set.dataset.transform = normalise
    return {
        "train": DataLoader(train_set, batch_size=10, shuffle=True),
        "val": DataLoader(val_set, batch_size=10),
    }
