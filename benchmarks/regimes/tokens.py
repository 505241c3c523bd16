"""tokens: windows of 1,025 tokens from a memory map of 5e7 uint16, shuffled, batches of 32, int64 out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.libraries import (
    AUTO,
    gathering_sides,
    headrace_sides,
    torch_batched,
    torch_sides,
)
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Target, Work
from benchmarks.shards import huggingface_side, litdata_side, streaming_side

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

    gathers = True

    def __init__(self, work: Work) -> None:
        self.path = str(work.folder / "tokens.bin")
        self.tokens = np.memmap(self.path, np.uint16, "r")

    def __len__(self) -> int:
        return (len(self.tokens) - WINDOW) // STRIDE + 1

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, list | np.ndarray):
            return np.stack([self[row] for row in index])
        return self.tokens[index * STRIDE : index * STRIDE + WINDOW].astype(np.int64)

    def view(self) -> np.ndarray:
        """All windows as one array, without a copy."""
        return np.lib.stride_tricks.sliding_window_view(self.tokens, WINDOW)[::STRIDE]


def limit(work: Work) -> Epochs:
    # As a plain array: the memory map's own class costs time at every index.
    windows, out = np.asarray(Windows(work).view()), np.empty((BATCH, WINDOW), np.int64)

    def fill(rows: np.ndarray) -> np.ndarray:
        out[: len(rows)] = windows[rows]
        return out[: len(rows)]

    return limits.in_caller(len(windows), BATCH, fill)


def headrace_tokens(work: Work) -> Any:
    import headrace as hr

    return hr.tokens(work.folder / "tokens.bin", window=WINDOW, stride=STRIDE, dtype="uint16")


class Stored(Windows):
    """What libraries with a format of their own keep: the window as uint16, made int64 when it is read."""

    def __getitem__(self, index: int) -> tuple[np.ndarray]:
        return (self.tokens[index * STRIDE : index * STRIDE + WINDOW],)


def wide(work: Work) -> Callable[[tuple[np.ndarray]], np.ndarray]:  # noqa: ARG001 one signature
    return lambda fields: fields[0].astype(np.int64)


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
            Side(name="LIMIT, one strided gather", library=LIMIT, open=limit),
            *headrace_sides(headrace_tokens, BATCH, AUTO, "hr.tokens, "),
            *headrace_sides(Windows, BATCH, AUTO),
            *torch_sides(Windows, BATCH),
            torch_batched(Windows, BATCH),
            *gathering_sides(Windows, BATCH, tf_gather),
            huggingface_side(Stored, BATCH),
            litdata_side(Stored, BATCH, wide),
            streaming_side(Stored, BATCH, {"tokens": f"ndarray:uint16:{WINDOW}"}, wide),
        ),
        targets=(
            Target(side="headrace, hr.tokens, auto", against="LIMIT", at_least=0.5),
            Target(side="headrace, auto", against="LIMIT", at_least=0.5),
        ),
    )
]
