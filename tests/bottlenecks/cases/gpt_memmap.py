"""A small language model on a file of tokens."""

import pathlib
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CONTEXT = 128


class Tokens(Dataset):
    def __init__(self, path):
        self.tokens = np.memmap(path, np.uint16, "r")

    def __len__(self):
        return len(self.tokens) // CONTEXT - 1

    def __getitem__(self, index):
        piece = self.tokens[index * CONTEXT : (index + 1) * CONTEXT + 1].astype(np.int64)
        return torch.from_numpy(piece)


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "train.bin"
    np.random.default_rng(17).integers(0, 1000, 4000 * CONTEXT, dtype=np.uint16).tofile(path)
    return DataLoader(Tokens(path), batch_size=8, shuffle=True, num_workers=0)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    embedding = nn.Embedding(1000, 96)
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(96, 4, 256, 0.0, batch_first=True), 2)
    head = nn.Linear(96, 1000)
    mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
    optimizer = torch.optim.AdamW([*embedding.parameters(), *layers.parameters(), *head.parameters()])

    def train_step(tokens):
        logits = head(layers(embedding(tokens[:, :-1]), mask=mask, is_causal=True))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
