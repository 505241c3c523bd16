"""Measures two or more ways of doing the same thing side by side, in interleaved rounds, and keeps every value.

A machine's speed drifts: what is measured one after the other differs even when nothing does. So each round measures
every side once, the next round in the opposite order (ABBA), and sides are compared within a round: the ratio shown is
the median of the rounds' ratios, beside the smallest and the largest.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import statistics
from collections.abc import Callable
from pathlib import Path


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """One claim, and the sides to measure; each callable does its work once and returns its value in `unit`."""

    name: str
    unit: str
    more_is_better: bool
    sides: dict[str, Callable[[], float]]
    """The first one is the reference."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """All values of a comparison, one per side and round."""

    name: str
    unit: str
    more_is_better: bool
    values: dict[str, list[float]]

    def median(self, side: str) -> float:
        """The middle value of a side."""
        return statistics.median(self.values[side])

    def ratios(self, side: str) -> list[float]:
        """How many times better than the reference a side was, round by round; above 1 = better."""
        reference = next(iter(self.values))
        pairs = zip(self.values[side], self.values[reference], strict=True)
        return [value / base if self.more_is_better else base / value for value, base in pairs]


def run(comparison: Comparison, num_rounds: int) -> Result:
    """Returns the values of `num_rounds` rounds, after one that is thrown away because it pays for imports and caches."""
    values: dict[str, list[float]] = {side: [] for side in comparison.sides}
    for number in range(-1, num_rounds):
        sides = list(comparison.sides.items())
        for side, measure in sides if number % 2 else reversed(sides):
            value = measure()
            if number >= 0:
                values[side].append(value)
    return Result(name=comparison.name, unit=comparison.unit, more_is_better=comparison.more_is_better, values=values)


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    names = ("headrace", "torch", "numpy")
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in names},
    }


def _processor() -> str:
    rows = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.processor())


def table(results: list[Result]) -> str:
    """Returns the results as a Markdown table: median of each side, ratio to the reference with its range."""
    rows = ["| what | unit | side | median | times better | range over rounds |", "|---|---|---|--:|--:|--:|"]
    for result in results:
        for number, side in enumerate(result.values):
            head = f"| {result.name} | {result.unit} " if number == 0 else "| | "
            ratios = result.ratios(side)
            ratio = (
                "reference | "
                if number == 0
                else (f"{statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f}")
            )
            rows.append(f"{head}| {side} | {result.median(side):,.4g} | {ratio} |")
    return "\n".join(rows)
