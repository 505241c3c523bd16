"""latency: every read sleeps 20 ms and needs no processor, like an object store; what counts is how many are in flight."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from benchmarks.libraries import HEADRACE, TORCH, grain_side, headrace_sides, spdl_side, torch_sides, torchdata_side
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Work

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

        from benchmarks.libraries import stack
        from spdl.pipeline import PipelineBuilder

        async def read(index: int) -> np.ndarray:
            await asyncio.sleep(SLEEP_S)
            return np.full(8, index)

        def epoch(number: int) -> Any:
            rows = np.random.default_rng(number).permutation(work.size["num_samples"]).tolist()
            chain = PipelineBuilder().add_source(rows).pipe(read, concurrency=in_flight, output_order="input")
            pipeline = chain.aggregate(BATCH).pipe(stack).add_sink(4).build(num_threads=1)
            with pipeline.auto_stop():
                yield from pipeline

        return Epochs(epoch)

    return Side(name=f"SPDL, {in_flight} coroutines", library="spdl", open=open_loader, imports=("spdl.pipeline",))


def _regime(in_flight: int) -> Regime:
    def limit(work: Work) -> Epochs:
        samples = Remote(work)

        def write(slot: np.ndarray, row: int, index: int) -> None:
            slot[row] = samples[index]

        return limits.threads(in_flight, len(samples), BATCH, lambda: np.empty((BATCH, 8), np.int64), write)

    named = {
        "auto": HEADRACE["auto"],
        f"{in_flight} threads": {"num_workers": in_flight, "runner": "threads"},
        "16 processes": {"num_workers": 16, "persistent_workers": True},
    }
    return Regime(
        name=f"latency {in_flight}",
        title=f"every read sleeps 20 ms, {in_flight} at once, batch 32",
        sizes={"full": {"num_samples": 32_768}, "tiny": {"num_samples": 64}},
        make=lambda _: {},
        sides=(
            Side(name=f"LIMIT, {in_flight} bare threads", library=LIMIT, open=limit),
            *headrace_sides(Remote, BATCH, named),
            *torch_sides(Remote, BATCH, {**TORCH, "16 workers": {"num_workers": 16, "persistent_workers": True}}),
            torchdata_side(Remote, BATCH, in_flight),
            grain_side(Remote, BATCH, threads=in_flight),
            spdl_side(Remote, BATCH, threads=in_flight),
            spdl_async(in_flight),
        ),
    )


REGIMES = [_regime(64), _regime(256)]
