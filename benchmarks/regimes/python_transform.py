"""Python transform: 2 ms of pure Python per sample, which holds the interpreter lock: only processes can share it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from benchmarks.libraries import HEADRACE, grain_side, headrace_sides, spdl_side, torch_sides
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Target, Work

from benchmarks import limits

BATCH = 16
TARGET_S = 0.002


def kernel(index: int, repeats: int) -> int:
    value = index
    for _ in range(repeats):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


def make(work: Work) -> dict[str, Any]:  # noqa: ARG001 one signature
    """Finds once how many repetitions take 2 ms here; every side then does exactly as many."""
    repeats = 10_000
    seconds = min(_seconds(repeats) for _ in range(20))
    return {"repeats": round(repeats * TARGET_S / seconds)}


def _seconds(repeats: int) -> float:
    begin_s = time.perf_counter()
    kernel(1, repeats)
    return time.perf_counter() - begin_s


class Python:
    """Samples that are computed by a Python loop."""

    def __init__(self, work: Work) -> None:
        self.num_samples, self.repeats = work.size["num_samples"], work.meta()["repeats"]

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full(8, kernel(index, self.repeats))


def limit(work: Work) -> Epochs:
    samples = Python(work)

    def write(slot: np.ndarray, row: int, index: int) -> None:
        slot[row] = samples[index]

    return limits.processes(2, len(samples), BATCH, 8, write)


REGIMES = [
    Regime(
        name="Python transform",
        title="2 ms of pure Python per sample, batch 16",
        sizes={"full": {"num_samples": 1600}, "tiny": {"num_samples": 64}},
        make=make,
        is_whole_epochs=True,
        sides=(
            Side(name="LIMIT, two bare processes", library=LIMIT, open=limit),
            *headrace_sides(Python, BATCH, HEADRACE),
            *torch_sides(Python, BATCH),
            grain_side(Python, BATCH, workers=2),
            spdl_side(Python, BATCH, threads=2),
        ),
        targets=(Target(side="headrace, auto", against="LIMIT", at_least=0.97),),
    )
]
