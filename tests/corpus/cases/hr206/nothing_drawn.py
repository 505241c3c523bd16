"""Plain digits; the seed in the workers is a habit."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def seed_worker(worker_id):
    np.random.seed(worker_id)


def make_loader():
    digits = load_digits()
    data = TensorDataset(torch.from_numpy(digits.data[:200]).float(), torch.from_numpy(digits.target[:200]))
    return DataLoader(data, batch_size=8, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
