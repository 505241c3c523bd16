"""latency: every read sleeps 20 ms and needs no processor, like an object store; what counts is how many are in flight."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.libraries import (
    AUTO,
    grain_side,
    headrace_sides,
    spdl_epochs,
    spdl_side,
    stack,
    torch_sides,
    torchdata_side,
)
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Target, Work

from benchmarks import limits

BATCH = 32
SLEEP_S = 0.020


class Remote:
    """Samples that take 20 ms to arrive and hold only their number."""

    def __init__(self, work: Work) -> None:
        self.num_samples = work.size["num_samples"]

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(SLEEP_S)
        return np.full(8, index)


def spdl_async(in_flight: int) -> Side:
    def open_loader(work: Work) -> Any:
        import asyncio

        from spdl.pipeline import PipelineBuilder

        async def read(index: int) -> np.ndarray:
            await asyncio.sleep(SLEEP_S)
            return np.full(8, index)

        def rows() -> Iterator[int]:
            for epoch in itertools.count():
                yield from np.random.default_rng(epoch).permutation(work.size["num_samples"]).tolist()

        chain = PipelineBuilder().add_source(rows()).pipe(read, concurrency=in_flight, output_order="input")
        pipeline = chain.aggregate(BATCH).pipe(stack).add_sink(4).build(num_threads=1)
        return spdl_epochs(pipeline, work.size["num_samples"] // BATCH)

    return Side(name=f"SPDL, {in_flight} coroutines", library="spdl", open=open_loader, imports=("spdl.pipeline",))


def limit_side(in_flight: int) -> Side:
    def limit(work: Work) -> Epochs:
        samples = Remote(work)

        def write(slot: np.ndarray, row: int, index: int) -> None:
            slot[row] = samples[index]

        return limits.threads(in_flight, len(samples), BATCH, lambda: np.empty((BATCH, 8), np.int64), write)

    return Side(name=f"LIMIT, {in_flight} bare threads", library=LIMIT, open=limit)


HOST = {"host of 256 threads": {"num_workers": 256, "runner": "host"}}
WORKERS = {f"{number} workers": {"num_workers": number, "persistent_workers": True} for number in (16, 64)}

REGIMES = [
    Regime(
        name="latency",
        title="every read sleeps 20 ms, batch 32; 64 or 256 at once, or as many as the loader chooses",
        sizes={"full": {"num_samples": 262_144}, "tiny": {"num_samples": 64}},
        make=lambda _: {},
        sides=(
            limit_side(64),
            limit_side(256),
            *headrace_sides(Remote, BATCH, {**AUTO, **HOST}),
            *torch_sides(Remote, BATCH, WORKERS),
            torchdata_side(Remote, BATCH, 256),
            grain_side(Remote, BATCH, threads=256),
            spdl_side(Remote, BATCH, threads=256),
            spdl_async(256),
        ),
        seconds=4,
        targets=(
            Target(side="headrace, auto", against="LIMIT, 64", at_least=0.97),
            Target(side="headrace, auto", against="LIMIT, 256", at_least=0.9),
        ),
    )
]
