import torch
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset


class Grouped(Sampler):
    def __init__(self, sampler, size):
        self.sampler, self.size, self.epoch = sampler, size, 0

    def __len__(self):
        return -(-len(self.sampler) // self.size)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.size:
                yield batch
                batch = []
        if batch:
            yield batch


def get_loader(rank=0, world_size=1):
    data = TensorDataset(torch.arange(800.0).reshape(200, 4))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank)
    return DataLoader(data, batch_sampler=Grouped(sampler, 10))


def train(step, num_epochs):
    loader = get_loader()
    for epoch in range(num_epochs):
        loader.batch_sampler.set_epoch(epoch)
        for (values,) in loader:
            step(values)
