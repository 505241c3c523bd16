import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

BLOCK = 32


class TokenBlocks(IterableDataset):
    """Cuts one long text into blocks for a language model."""

    def __init__(self, num_tokens=8192):
        self.tokens = np.random.default_rng(3).integers(0, 500, num_tokens)

    def __iter__(self):
        for start in range(0, len(self.tokens) - BLOCK, BLOCK):
            block = torch.from_numpy(self.tokens[start : start + BLOCK + 1].astype(np.int64))
            yield {"input_ids": block[:-1], "labels": block[1:]}


def make_loader():
    return DataLoader(TokenBlocks(), batch_size=8, num_workers=4, persistent_workers=True)
