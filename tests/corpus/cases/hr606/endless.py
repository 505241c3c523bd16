import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset


class InfiniteSampler(Sampler):
    def __init__(self, size, seed=0):
        self.size = size
        self.seed = seed

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield from torch.randperm(self.size, generator=generator).tolist()


def make_loader():
    features = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(features, torch.arange(200) % 2)
    return DataLoader(data, batch_size=16, sampler=InfiniteSampler(len(data)))
