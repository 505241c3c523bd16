import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import BatchSampler, DataLoader, Dataset


class Utterances(Dataset):
    def __init__(self):
        generator = random.Random(3)
        self.lengths = [generator.randint(10, 90) for _ in range(320)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return {"frames": torch.full((self.lengths[i], 2), float(i)), "length": self.lengths[i]}


class SimilarLength(BatchSampler):
    def __init__(self, lengths, batch_size):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)


def join(samples):
    return {
        "frames": pad_sequence([sample["frames"] for sample in samples], batch_first=True),
        "length": torch.tensor([sample["length"] for sample in samples]),
    }


def make_loader():
    data = Utterances()
    return DataLoader(data, batch_sampler=SimilarLength(data.lengths, 16), collate_fn=join)
