"""many fields: samples that are dicts of 114 small arrays, batches of 16. What is measured is the cost per field."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.libraries import (
    AUTO,
    INLINE,
    PROCESSES,
    grain_side,
    headrace_sides,
    spdl_side,
    torch_sides,
    torchdata_side,
)
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Target, Work

from benchmarks import limits

BATCH = 16
NUM_FIELDS = 114
WIDTH = 10
NAMES = [f"field_{number:03}" for number in range(NUM_FIELDS)]


def make(work: Work) -> dict[str, Any]:
    shape = (work.size["num_samples"], NUM_FIELDS, WIDTH)
    np.save(work.folder / "fields.npy", np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    return {}


class Dicts:
    """Ready-made dicts of arrays, or of tensors."""

    def __init__(self, work: Work, *, as_tensors: bool = False) -> None:
        table: Any = np.load(work.folder / "fields.npy")
        if as_tensors:
            import torch

            table = torch.from_numpy(table)
        self.samples = [dict(zip(NAMES, row, strict=True)) for row in table]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.samples[index]


def tensors(work: Work) -> Dicts:
    return Dicts(work, as_tensors=True)


def limit_one_block(work: Work) -> Epochs:
    """One call for all arrays of a batch, as they come; a field is a strided view of the block."""
    samples = Dicts(work).samples
    block = np.empty((BATCH, NUM_FIELDS, WIDTH), np.float32)
    flat, out = block.reshape(-1), dict(zip(NAMES, block.swapaxes(0, 1), strict=True))

    def fill(rows: np.ndarray) -> dict[str, np.ndarray]:
        np.concatenate([field for row in rows.tolist() for field in samples[row].values()], out=flat)
        return out

    return limits.in_caller(len(samples), BATCH, fill)


def limit_by_field(work: Work) -> Epochs:
    """One call per field, each into its contiguous part of one block: what loaders deliver."""
    samples = Dicts(work).samples
    block = np.empty((NUM_FIELDS, BATCH, WIDTH), np.float32)
    out = dict(zip(NAMES, block, strict=True))
    flat = {name: field.reshape(-1) for name, field in out.items()}

    def fill(rows: np.ndarray) -> dict[str, np.ndarray]:
        chosen = [samples[row] for row in rows.tolist()]
        for name, field in flat.items():
            np.concatenate([sample[name] for sample in chosen], out=field)
        return out

    return limits.in_caller(len(samples), BATCH, fill)


REGIMES = [
    Regime(
        name="many fields",
        title="dicts of 114 small tensors, batch 16",
        sizes={"full": {"num_samples": 2048}, "tiny": {"num_samples": 64}},
        make=make,
        sides=(
            Side(name="LIMIT, stacked in one call", library=LIMIT, open=limit_one_block),
            Side(name="LIMIT, stacked field by field", library=LIMIT, open=limit_by_field),
            *headrace_sides(tensors, BATCH, {**AUTO, **INLINE, **PROCESSES}),
            *torch_sides(tensors, BATCH),
            torchdata_side(Dicts, BATCH, 2, "batch"),
            grain_side(Dicts, BATCH),
            spdl_side(Dicts, BATCH, threads=2, unit="batch"),
        ),
        targets=(
            Target(side="headrace, auto", against="LIMIT, stacked field by field", at_least=0.6),
            Target(side="headrace, auto", against="LIMIT, stacked in one call", at_least=0.6),
        ),
    )
]
