"""trainer beside: a training step of fixed work in one thread of the main process, fed with jpeg batches.

A loader that is fast by itself may take the trainer's core or its interpreter lock. The step is 1.5 times as long as one
core needs for its batch, so a loader that keeps out of the way never lets it wait.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.libraries import grain_side, headrace_sides, spdl_side, torch_sides
from benchmarks.regime import LIMIT, Regime, Side, Work
from benchmarks.regimes import jpeg

from benchmarks import meter

BATCH = 16


def make(work: Work) -> dict[str, Any]:
    noted = jpeg.make(work)
    samples = jpeg.Photographs(work)
    begin_s = time.perf_counter()
    for index in range(32):
        samples[index]
    batch_s = (time.perf_counter() - begin_s) / 32 * BATCH
    return {**noted, "batch_s": batch_s, "step_repeats": meter.step_repeats(1.5 * batch_s)}


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
            *headrace_sides(jpeg.Photographs, BATCH),
            *torch_sides(jpeg.Photographs, BATCH),
            grain_side(jpeg.Photographs, BATCH, threads=2),
            grain_side(jpeg.Photographs, BATCH, workers=2),
            spdl_side(jpeg.Photographs, BATCH, threads=2, unit="batch"),
        ),
    )
]
