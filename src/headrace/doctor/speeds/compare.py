"""Compares what two loaders deliver, and then how fast they do."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence.equivalence import Equivalence
from headrace.doctor.evidence.speeds import SpeedRatio
from headrace.doctor.sameness.compare import Options, compare
from headrace.doctor.speeds.in_turn import time_in_turn

__all__ = ["compare_with_speed"]

SHARE_OF_DATA = 0.5
"""Of the budget, at most for the data; what they leave is the clock's."""


def compare_with_speed(
    target_a: Any,
    target_b: Any,
    options: Options | None = None,
    *,
    workers: tuple[int | None, int | None] = (None, None),
    progress: Callable[[str], None] | None = None,
) -> Equivalence:
    """Returns whether two loaders deliver the same data, and, unless they do not, how fast B is beside A.

    Where the data differ nothing is timed: a loader that leaves work out is faster, and nobody gains by it.

    Args:
        target_a: As in `compare`.
        target_b: The other one.
        options: How to compare; the budget is for both.
        workers: Numbers of workers. Default: as each is set.
        progress: Told, in a few words, what is being done.

    Raises:
        TargetError: a TARGET cannot be loaded, or is nothing that can be walked.
        ConfigurationError: a loader has no number of workers that could be changed.
    """
    options = options or Options()
    began_s = time.monotonic()
    of_data = dataclasses.replace(options, budget_s=SHARE_OF_DATA * options.budget_s)
    found = compare(target_a, target_b, of_data, workers=workers, progress=progress)
    if found.verdict == "different":
        return dataclasses.replace(found, speed=_not_timed("they do not deliver the same data"))
    left_s = options.budget_s - (time.monotonic() - began_s)
    is_whole = options.max_samples is None and found.side_a.num_samples
    with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder:
        speed = time_in_turn(
            target_a,
            target_b,
            budget_s=left_s,
            seed=options.seed,
            folder=folder,
            workers=workers,
            num_samples=found.side_a.num_samples[0] if is_whole else None,
            say=progress or (lambda _: None),
        )
    return dataclasses.replace(found, speed=speed)


def _not_timed(why: str) -> SpeedRatio:
    return SpeedRatio(
        rates_a=(), rates_b=(), outcome="inconclusive", ratio=None, interval=None, noise=None, num_blocks=0, why=why
    )
