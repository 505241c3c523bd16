"""rows: a million rows of 16 float32 and a label in memory, shuffled, batches of 1,024. The loader's own cost is all there is."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.libraries import (
    AUTO,
    HEADRACE,
    gathering_sides,
    headrace_sides,
    torch_batched,
    torch_sides,
)
from benchmarks.regime import LIMIT, PEERS, Epochs, Regime, Side, Target, Work
from benchmarks.shards import huggingface_side, litdata_side, streaming_side

from benchmarks import limits

BATCH = 1024


def make(work: Work) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    np.save(work.folder / "x.npy", rng.standard_normal((work.size["num_samples"], 16), dtype=np.float32))
    np.save(work.folder / "y.npy", np.arange(work.size["num_samples"]))
    return {}


def arrays(work: Work) -> tuple[np.ndarray, np.ndarray]:
    return np.load(work.folder / "x.npy"), np.load(work.folder / "y.npy")


def tensors(work: Work) -> Any:
    """The data set that everyone writes for this: torch's own."""
    import torch
    import torch.utils.data

    return torch.utils.data.TensorDataset(*map(torch.from_numpy, arrays(work)))


class Rows:
    """The same for libraries without tensors; a list of rows gathers them at once."""

    gathers = True

    def __init__(self, work: Work) -> None:
        self.x, self.y = arrays(work)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        return self.x[index], self.y[index]


def limit(work: Work) -> Epochs:
    x, y = arrays(work)
    out_x, out_y = np.empty((BATCH, 16), np.float32), np.empty(BATCH, np.int64)

    def fill(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # "clip" spares numpy a buffer of its own; every row is inside.
        size = len(rows)
        np.take(x, rows, axis=0, out=out_x[:size], mode="clip")
        np.take(y, rows, axis=0, out=out_y[:size], mode="clip")
        return out_x[:size], out_y[:size]

    return limits.in_caller(len(x), BATCH, fill)


def headrace_arrays(work: Work) -> Any:
    import headrace as hr

    return hr.arrays(*arrays(work))


def tf_gather(work: Work) -> Any:
    import tensorflow as tf

    x, y = map(tf.constant, arrays(work))
    chain = tf.data.Dataset.range(len(y)).shuffle(len(y)).batch(BATCH)
    chain = chain.map(lambda rows: (tf.gather(x, rows), tf.gather(y, rows)), num_parallel_calls=tf.data.AUTOTUNE)
    return Epochs(lambda _: chain.prefetch(tf.data.AUTOTUNE).as_numpy_iterator())


REGIMES = [
    Regime(
        name="rows",
        title="rows of 16 float32 and a label in memory, batch 1,024",
        sizes={"full": {"num_samples": 1_000_000}, "tiny": {"num_samples": 20_000}},
        make=make,
        sides=(
            Side(name="LIMIT, one gather per field", library=LIMIT, open=limit),
            *headrace_sides(headrace_arrays, BATCH, AUTO, "hr.arrays, "),
            *headrace_sides(tensors, BATCH, HEADRACE),
            *torch_sides(tensors, BATCH),
            torch_batched(tensors, BATCH),
            torch_batched(tensors, BATCH, num_workers=2),
            *gathering_sides(Rows, BATCH, tf_gather),
            huggingface_side(Rows, BATCH),
            litdata_side(Rows, BATCH),
            streaming_side(Rows, BATCH, {"x": "ndarray:float32:16", "y": "int"}),
        ),
        targets=tuple(
            target
            for side in ("headrace, hr.arrays, auto", "headrace, auto")
            for target in (
                Target(side=side, against="LIMIT", at_least=0.5),
                Target(side=side, against="torch, no workers|torch, 2 workers", at_least=40),
                Target(side=side, against=PEERS, at_least=1.5),
            )
        ),
    )
]
