"""Masked words: each time other words are hidden."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 96


class Masked(Dataset):
    def __init__(self, count=4000):
        self.words = torch.randint(5, 1000, (count, LENGTH), generator=torch.Generator().manual_seed(18))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        words = self.words[index]
        hidden = torch.rand(LENGTH) < 0.15
        return torch.where(hidden, 3, words), torch.where(hidden, words, -100)


def make_loader():
    return DataLoader(Masked(), batch_size=48, shuffle=True, num_workers=2, persistent_workers=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    embedding = nn.Embedding(1000, 96)
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(96, 4, 256, 0.0, batch_first=True), 3)
    head = nn.Linear(96, 1000)
    optimizer = torch.optim.AdamW([*embedding.parameters(), *layers.parameters(), *head.parameters()])

    def train_step(batch):
        words, hidden = batch
        loss = nn.functional.cross_entropy(head(layers(embedding(words))).flatten(0, 1), hidden.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
