"""slow tail: one sample in a hundred takes twenty times as long, asleep or busy; order kept."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import numpy as np
from benchmarks.libraries import (
    AUTO,
    PROCESSES,
    THREADS,
    TORCH,
    grain_side,
    headrace_sides,
    spdl_side,
    torch_sides,
    torchdata_side,
)
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Target, Work

from benchmarks import limits

BATCH = 16
SLOW_EVERY, TIMES = 100, 20
SLEEP_S = 0.002
BUSY_BYTES = 1 << 20
"""Hashed per ordinary sample, which takes about a millisecond and lets go of the interpreter lock."""

BLOCK = bytes(BUSY_BYTES)


class Tail:
    """Samples that cost time and hold only their number."""

    def __init__(self, work: Work, *, is_busy: bool) -> None:
        self.num_samples, self.is_busy = work.size["num_samples"], is_busy

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> np.ndarray:
        times = TIMES if index % SLOW_EVERY == 0 else 1
        if self.is_busy:
            for _ in range(times):
                hashlib.sha256(BLOCK)
        else:
            time.sleep(times * SLEEP_S)
        return np.full(8, index)


def sleeping(work: Work) -> Tail:
    return Tail(work, is_busy=False)


def busy(work: Work) -> Tail:
    return Tail(work, is_busy=True)


def _regime(name: str, title: str, dataset: Any, at_least: float) -> Regime:
    def limit(work: Work) -> Epochs:
        samples = dataset(work)

        def write(slot: np.ndarray, row: int, index: int) -> None:
            slot[row] = samples[index]

        return limits.threads(2, len(samples), BATCH, lambda: np.empty((BATCH, 8), np.int64), write)

    return Regime(
        name=name,
        title=title,
        sizes={"full": {"num_samples": 1600}, "tiny": {"num_samples": 160}},
        make=lambda _: {},
        is_whole_epochs=True,
        sides=(
            Side(name="LIMIT, two bare threads", library=LIMIT, open=limit),
            *headrace_sides(dataset, BATCH, {**AUTO, **THREADS, **PROCESSES}),
            *torch_sides(dataset, BATCH, {"2 workers": TORCH["2 workers"]}),
            torchdata_side(dataset, BATCH, 2),
            grain_side(dataset, BATCH, threads=2),
            spdl_side(dataset, BATCH, threads=2),
        ),
        # Auto takes as many sleepers as it likes, so what a slow sample holds up shows in two threads against two.
        targets=tuple(
            Target(side=f"headrace, {name}", against="LIMIT", at_least=at_least) for name in (*AUTO, *THREADS)
        ),
    )


REGIMES = [
    _regime("slow tail asleep", "2 ms of sleep, 1 % of samples 40 ms, batch 16, order kept", sleeping, 0.98),
    _regime("slow tail busy", "1 MiB hashed, 1 % of samples 20 MiB, batch 16, order kept", busy, 0.93),
]
