import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Repeat(Dataset):
    def __init__(self, dataset, times):
        self.dataset, self.times = dataset, times

    def __len__(self):
        return self.times * len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index % len(self.dataset)]


def first_batches(dataset):
    for number, sample in enumerate(dataset):
        if number == 3:
            break
        print(sample)


def make_loader():
    base = TensorDataset(torch.randn(12, 5, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3)
    repeated = Repeat(base, 10)
    first_batches(repeated)
    return DataLoader(repeated, batch_size=8, shuffle=True)
