"""Peptides as counts of their residues and pairs, counted in Python."""

import numpy as np
import torch
from torch import nn

import headrace as hr

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
PLACE = {residue: place for place, residue in enumerate(RESIDUES)}


def make_peptides(count=3000, length=900):
    rng = np.random.default_rng(31)
    return ["".join(rng.choice(list(RESIDUES), length)) for _ in range(count)]


def counted(record):
    number, peptide = record
    pairs = np.zeros((20, 20), np.float32)
    before = None
    for residue in peptide:
        here = PLACE[residue]
        if before is not None:
            pairs[before, here] += 1
        before = here
    return {"pairs": torch.from_numpy(pairs.ravel()), "binds": number % 2}


def make_loader():
    plan = hr.Plan.of(list(enumerate(make_peptides()))).map(counted)
    return hr.DataLoader(plan, batch_size=64, shuffle=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(400, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        loss = nn.functional.cross_entropy(model(batch["pairs"]), batch["binds"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
