"""tokens: windows of 1,025 tokens from a memory map of 5e7 uint16, shuffled, batches of 32, int64 out."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.libraries import grain_side, headrace_sides, spdl_side, torch_batched, torch_sides, torchdata_side
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Work

from benchmarks import limits

BATCH = 32
WINDOW = 1025
STRIDE = 1024
"""Input and target overlap by one token: [0:-1] and [1:]."""


def make(work: Work) -> dict[str, Any]:
    np.random.default_rng(0).integers(0, 50_257, work.size["num_tokens"], dtype=np.uint16).tofile(
        work.folder / "tokens.bin"
    )
    return {}


class Windows:
    """Windows over a token file, as training scripts cut them; a list of rows gives them in one array."""

    def __init__(self, work: Work) -> None:
        self.path = str(work.folder / "tokens.bin")
        self.tokens = np.memmap(self.path, np.uint16, "r")

    def __len__(self) -> int:
        return (len(self.tokens) - WINDOW) // STRIDE + 1

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, list):
            return np.stack([self[row] for row in index])
        return self.tokens[index * STRIDE : index * STRIDE + WINDOW].astype(np.int64)

    def view(self) -> np.ndarray:
        """All windows as one array, without a copy."""
        return np.lib.stride_tricks.sliding_window_view(self.tokens, WINDOW)[::STRIDE]


def limit(work: Work) -> Epochs:
    windows, out = Windows(work).view(), np.empty((BATCH, WINDOW), np.int64)

    def fill(rows: np.ndarray) -> np.ndarray:
        for place, row in enumerate(rows.tolist()):
            out[place] = windows[row]
        return out[: len(rows)]

    return limits.in_caller(len(windows), BATCH, fill)


def headrace_tokens(work: Work) -> Any:
    import headrace as hr

    plan = hr.tokens(work.folder / "tokens.bin", window=WINDOW, stride=STRIDE, dtype="uint16")
    return hr.DataLoader(plan, batch_size=BATCH, shuffle=True, seed=0)


def tf_gather(work: Work) -> Any:
    import tensorflow as tf

    tokens, count = tf.constant(np.asarray(Windows(work).tokens)), len(Windows(work))
    inside = tf.range(WINDOW, dtype=tf.int64)[None]
    chain = tf.data.Dataset.range(count).shuffle(count).batch(BATCH)
    chain = chain.map(
        lambda rows: tf.cast(tf.gather(tokens, rows[:, None] * STRIDE + inside), tf.int64),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    return Epochs(lambda _: chain.prefetch(tf.data.AUTOTUNE).as_numpy_iterator())


REGIMES = [
    Regime(
        name="tokens",
        title="windows of 1,025 from a memory map of uint16 tokens, batch 32, int64 out",
        sizes={"full": {"num_tokens": 50_000_000}, "tiny": {"num_tokens": 600_000}},
        make=make,
        sides=(
            Side(name="LIMIT, one copy per window", library=LIMIT, open=limit),
            *headrace_sides(Windows, BATCH),
            Side(
                name="headrace, hr.tokens",
                library="headrace",
                open=headrace_tokens,
                imports=("torch.utils.data", "headrace.engine.loader"),
            ),
            *torch_sides(Windows, BATCH),
            torch_batched(Windows, BATCH),
            torch_batched(Windows, BATCH, num_workers=2),
            torchdata_side(Windows, BATCH, 2),
            grain_side(Windows, BATCH, threads=2),
            spdl_side(Windows, BATCH, threads=2, unit="batch"),
            Side(name="tf.data, gather", library="tensorflow", open=tf_gather, imports=("tensorflow",)),
        ),
    )
]
