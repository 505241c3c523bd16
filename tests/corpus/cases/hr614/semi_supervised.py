import torch
from torch.utils.data import DataLoader, Subset, TensorDataset


def make_loaders():
    data = TensorDataset(torch.arange(900.0).reshape(300, 3), torch.arange(300) % 2)
    labelled = DataLoader(Subset(data, range(50)), batch_size=10, shuffle=True)
    unlabelled = DataLoader(data, batch_size=30, shuffle=True)
    return labelled, unlabelled
