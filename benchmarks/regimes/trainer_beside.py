"""trainer beside: a training step of fixed work in one thread of the main process, fed with jpeg batches.

A loader that is fast by itself may take the trainer's core or its interpreter lock. The step is 1.5 times as long as one
core needs for its batch, so a loader that keeps out of the way never lets it wait.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.libraries import (
    AUTO,
    HOST,
    PROCESSES,
    THREADS,
    TORCH,
    grain_side,
    headrace_sides,
    spdl_side,
    torch_sides,
)
from benchmarks.regime import LIMIT, Regime, Side, Target, Work
from benchmarks.regimes import jpeg

from benchmarks import meter

BATCH = 16


def make(work: Work) -> dict[str, Any]:
    noted = jpeg.make(work)
    samples = jpeg.Photographs(work)
    # The shortest of some times, sample by sample: what else runs here can only make one longer.
    batch_s = sum(min(_seconds(samples, index) for _ in range(5)) for index in range(32)) / 32 * BATCH
    return {**noted, "batch_s": batch_s, "step_repeats": meter.step_repeats(1.5 * batch_s)}


def _seconds(samples: jpeg.Photographs, index: int) -> float:
    begin_s = time.perf_counter()
    samples[index]
    return time.perf_counter() - begin_s


REGIMES = [
    Regime(
        name="trainer beside",
        title="a one-thread training step of 1.5 times a batch's decoding, jpeg batches of 16",
        sizes={
            "full": {"num_samples": 1024, "batch_size": BATCH},
            "tiny": {"num_samples": 128, "batch_size": BATCH},
        },
        make=make,
        made_in="photographs",
        measure="trainer",
        unit="ms wait per step",
        more_is_better=False,
        sides=(
            Side(name="LIMIT, two bare threads", library=LIMIT, open=lambda work: jpeg.limit(work, BATCH)),
            *headrace_sides(jpeg.Photographs, BATCH, {**AUTO, **HOST, **THREADS, **PROCESSES}),
            *torch_sides(jpeg.Photographs, BATCH, {"2 workers": TORCH["2 workers"]}),
            grain_side(jpeg.Photographs, BATCH, threads=2),
            grain_side(jpeg.Photographs, BATCH, workers=2),
            spdl_side(jpeg.Photographs, BATCH, threads=2, unit="batch"),
        ),
        seconds=4,
        targets=(
            Target(side="headrace, auto", key="step_efficiency", at_least=0.97, unit="step efficiency"),
            Target(side="headrace, auto", at_most=0.25, unit="ms wait per step"),
        ),
    )
]
