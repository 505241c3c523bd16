"""start: a data set that holds a list of a million paths, two workers: how long until the first batch, and between epochs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from benchmarks.libraries import AUTO, headrace_sides, torch_sides
from benchmarks.regime import Regime, Target, Work

BATCH = 256
METHODS = ("fork", "forkserver", "spawn")


def paths(num_samples: int) -> Iterator[str]:
    """The paths, one by one."""
    return (f"/data/train/n{number % 1000:08}/image_{number:08}.jpeg" for number in range(num_samples))


@functools.cache
def list_of_paths(num_samples: int) -> list[str]:
    """The list of this process, made once."""
    return list(paths(num_samples))


class Paths:
    """Samples that cost nothing; the list of paths is what has to reach the workers."""

    def __init__(self, work: Work) -> None:
        self.paths: Sequence[str] = list_of_paths(work.size["num_samples"])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return np.full(4, len(self.paths[index])), index


def settings(method: str) -> dict[str, Any]:
    return {f"{method}, 2 workers": {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": method}}


def _regime(method: str) -> Regime:
    ours = f"headrace, {method}, 2 workers"
    return Regime(
        name=f"start {method}",
        title=f"a list of 1,000,000 paths, 2 workers by {method}: first batch of 256",
        sizes={"full": {"num_samples": 1_000_000}, "tiny": {"num_samples": 20_000}},
        make=lambda _: {},
        measure="start",
        is_whole_epochs=method == "fork",  # the gap between epochs does not depend on how workers start
        unit="s to first batch",
        more_is_better=False,
        sides=(
            *headrace_sides(Paths, BATCH, {**settings(method), **(AUTO if method == "fork" else {})}),
            *torch_sides(Paths, BATCH, settings(method)),
        ),
        targets=(
            Target(side=ours, at_most=0.06 if method == "fork" else 0.5, unit="s to first batch"),
            *([Target(side=ours, key="epoch_gap_s", at_most=0.005, unit="s epoch gap")] if method == "fork" else []),
        ),
    )


REGIMES = [_regime(method) for method in METHODS]
