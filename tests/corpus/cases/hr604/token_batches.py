import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self):
        generator = random.Random(5)
        self.lengths = [generator.randint(4, 40) for _ in range(200)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.arange(self.lengths[i])


class TokenBatches:
    def __init__(self, lengths, max_tokens, max_length=32):
        self.lengths, self.max_tokens, self.max_length = lengths, max_tokens, max_length

    def __len__(self):
        return sum(self.lengths) // self.max_tokens + 1

    def __iter__(self):
        order = [i for i, length in enumerate(self.lengths) if length <= self.max_length]
        random.shuffle(order)
        batch, used = [], 0
        for i in order:
            if used + self.lengths[i] > self.max_tokens:
                yield batch
                batch, used = [], 0
            batch.append(i)
            used += self.lengths[i]
        if batch:
            yield batch


def collate(samples):
    return pad_sequence(samples, batch_first=True), torch.tensor([len(sample) for sample in samples])


def make_loader():
    data = Sentences()
    return DataLoader(data, batch_sampler=TokenBatches(data.lengths, 256), collate_fn=collate)
