import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler


class Utterances(Dataset):
    def __init__(self):
        generator = random.Random(3)
        self.lengths = [generator.randint(10, 90) for _ in range(320)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.full((self.lengths[i], 2), float(i)), self.lengths[i]


class Buckets(Sampler):
    def __init__(self, lengths, batch_size, width=20):
        self.lengths, self.batch_size, self.width = lengths, batch_size, width

    def __len__(self):
        counts = {}
        for length in self.lengths:
            counts[length // self.width] = counts.get(length // self.width, 0) + 1
        return sum(-(-count // self.batch_size) for count in counts.values())

    def __iter__(self):
        buckets = {}
        for i in random.sample(range(len(self.lengths)), len(self.lengths)):
            buckets.setdefault(self.lengths[i] // self.width, []).append(i)
        batches = [
            bucket[start : start + self.batch_size]
            for bucket in buckets.values()
            for start in range(0, len(bucket), self.batch_size)
        ]
        random.shuffle(batches)
        return iter(batches)


def join(samples):
    frames, lengths = zip(*samples)
    return pad_sequence(frames, batch_first=True), torch.tensor(lengths)


def make_loader():
    data = Utterances()
    return DataLoader(data, batch_sampler=Buckets(data.lengths, 16), collate_fn=join)
