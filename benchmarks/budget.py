"""How long a run will take: processes, and seconds each. An estimate, so that nobody starts an hour unawares."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.meter import SETTLE_S
from benchmarks.regime import LIMIT, Regime, Side

START_S = {LIMIT: 0.4, "tensorflow": 3.5, "dali": 1.5, "grain": 1.2, "spdl": 0.5}
"""Seconds to start a process and import the library, as seen on two cores of 2.x GHz; others, mostly torch, take this:"""
OTHER_S = 1.6
FIRST_S = 0.4
"""Until the first batches: opening the data, starting workers."""


def num_rounds(side: Side, rounds: int, peer_rounds: int) -> int:
    """Rounds in which a side is measured: those of the libraries that targets are about in all."""
    return rounds if side.library in {LIMIT, "headrace", "torch"} else min(rounds, peer_rounds)


def measured_s(regime: Regime, side: Side, seconds: float) -> float:
    """Seconds of one measured process."""
    start_s = START_S.get(side.library, OTHER_S) + FIRST_S
    if regime.measure in {"throughput", "trainer"}:
        warm_s = max(seconds / 4, side.warm_s, SETTLE_S / 3 if side.is_settled else 0)
        epochs_s = 2.5 if regime.is_whole_epochs else 0  # the first one, and the rest of the last one
        steps_s = 2.5 if regime.measure == "trainer" else 0
        return start_s + warm_s + seconds + epochs_s + steps_s
    return start_s + {"start": 1.5, "three_epochs": 10.0, "resume": 2.0}.get(regime.measure, seconds)


def estimate(regime: Regime, sides: Iterable[Side], rounds: int, peer_rounds: int, seconds: float) -> tuple[int, float]:
    """Returns (processes, seconds) of a regime: of each side a check, a run that is thrown away, and the rounds."""
    num, total_s = 0, 0.0
    for side in sides:
        runs = 1 + num_rounds(side, rounds, peer_rounds)
        checks = regime.measure in {"throughput", "trainer"}
        num += runs + checks
        total_s += measured_s(regime, side, seconds / 2) + (runs - 1) * measured_s(regime, side, seconds)
        total_s += checks * (START_S.get(side.library, OTHER_S) + FIRST_S)
    return num, total_s
