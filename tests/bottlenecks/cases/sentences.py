"""Sentences of different lengths for a tagger."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 2000


class Sentences(Dataset):
    def __init__(self, count=4000):
        rng = np.random.default_rng(2)
        self.lengths = rng.integers(100, 400, count)
        self.words = rng.integers(1, VOCABULARY, 400 + 400, dtype=np.int64)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        start = index % 400
        return self.words[start : start + self.lengths[index]]


def pad(sentences):
    longest = max(len(sentence) for sentence in sentences)
    words, mask, places, tags = [], [], [], []
    for sentence in sentences:
        row, keep, place, tag = [], [], [], []
        for number in range(longest):
            if number < len(sentence):
                word = int(sentence[number])
                row.append(word)
                keep.append(True)
                place.append(number)
                tag.append(word % 17)
            else:
                row.append(0)
                keep.append(False)
                place.append(0)
                tag.append(-100)
        words.append(row)
        mask.append(keep)
        places.append(place)
        tags.append(tag)
    return torch.tensor(words), torch.tensor(mask), torch.tensor(places), torch.tensor(tags)


def make_loader():
    return DataLoader(Sentences(), batch_size=128, shuffle=True, num_workers=2, collate_fn=pad)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    embedding = nn.Embedding(VOCABULARY, 4)
    head = nn.Linear(4, 17)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.1)

    def train_step(batch):
        words, mask, places, tags = batch
        words, tags = words[:, :64], tags[:, :64]
        loss = nn.functional.cross_entropy(head(embedding(words)).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
