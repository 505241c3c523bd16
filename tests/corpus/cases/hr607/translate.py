import torch
from bucketing import LengthBuckets
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self):
        self.lengths = [5 + (i * 7) % 23 for i in range(240)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.arange(self.lengths[i]) + 1


def join(samples):
    lengths = torch.tensor([len(sample) for sample in samples])
    return {"tokens": pad_sequence(samples, batch_first=True), "lengths": lengths}


def make_loader():
    pairs = Pairs()
    return DataLoader(pairs, batch_sampler=LengthBuckets(pairs.lengths, 12), collate_fn=join)


def fit(model, optimizer, max_epochs=20):
    loader = make_loader()
    epoch = 0
    while epoch < max_epochs:
        for batch in loader:
            optimizer.zero_grad()
            model(batch["tokens"], batch["lengths"]).sum().backward()
            optimizer.step()
        epoch += 1
