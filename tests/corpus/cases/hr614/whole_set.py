import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_loaders():
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(250, 7, generator=generator), torch.arange(250) % 5)
    train_set, val_set = random_split(data, [200, 50], generator=generator)
    train = DataLoader(data, batch_size=25, shuffle=True)
    val = DataLoader(val_set, batch_size=25)
    return train, val
