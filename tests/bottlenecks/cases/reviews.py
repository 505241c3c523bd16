"""Sentiment of reviews from hashed trigrams."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BUCKETS = 256


def write_reviews(count=2000):
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(500)]
    return [" ".join(rng.choices(words, k=220)) for _ in range(count)]


def trigrams(text):
    counts = [0.0] * BUCKETS
    for place in range(len(text) - 2):
        value = 0
        for letter in text[place : place + 3]:
            value = (value * 31 + ord(letter)) % BUCKETS
        counts[value] += 1.0
    return torch.tensor(counts)


class Reviews(Dataset):
    def __init__(self, texts, transform=None):
        self.texts = texts
        self.transform = transform

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        text = self.texts[index]
        return self.transform(text), float(index % 2)


def make_loader():
    return DataLoader(Reviews(write_reviews(), trigrams), batch_size=32, shuffle=True, num_workers=0)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(BUCKETS, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        counts, liked = batch
        loss = nn.functional.binary_cross_entropy_with_logits(model(counts)[:, 0], liked.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
