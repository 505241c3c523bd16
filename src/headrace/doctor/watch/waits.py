"""The waits of a loop over one loader, kept in a few hundred numbers however long it runs."""

from __future__ import annotations

import bisect
import heapq
import math

__all__ = ["Longest", "Waits"]

MOST_PARTS = 32
"""Parts of the run of which the share of waiting is kept. When all are full, neighbours are joined."""
EDGES = tuple(1e-6 * 2 ** (step / 4) for step in range(120))
"""Edges of the histogram: a microsecond to a quarter of an hour, four to each doubling, 19 % apart."""
FLOOR_S = 1e-3
"""A shorter wait is what any hand-over costs."""


class Waits:
    """Steps of one loop: each has a wait for the batch and the loop's own time with it."""

    def __init__(self) -> None:
        self.num_steps = 0
        self.wait_s = 0.0
        self.own_s = 0.0
        self.handover_s = self.handover_cpu_s = 0.0
        self.num_handovers = 0
        self._wait_counts = [0] * (len(EDGES) + 1)
        self._wait_sums = [0.0] * (len(EDGES) + 1)
        self._own_counts = [0] * (len(EDGES) + 1)
        self._own_sums = [0.0] * (len(EDGES) + 1)
        self._parts: list[list[float]] = []
        self._steps_per_part = 8

    def add(self, wait_s: float, own_s: float) -> None:
        """One step: the loop waited, then had the batch for `own_s`."""
        self.num_steps += 1
        self.wait_s += wait_s
        self.own_s += own_s
        at = bisect.bisect(EDGES, wait_s)
        self._wait_counts[at] += 1
        self._wait_sums[at] += wait_s
        at = bisect.bisect(EDGES, own_s)
        self._own_counts[at] += 1
        self._own_sums[at] += own_s
        parts = self._parts
        if not parts or parts[-1][2] >= self._steps_per_part:
            if len(parts) == MOST_PARTS:
                self._parts = parts = [
                    [first + second for first, second in zip(*pair, strict=True)]
                    for pair in zip(parts[::2], parts[1::2], strict=True)
                ]
                self._steps_per_part *= 2
            parts.append([0.0, 0.0, 0.0])
        part = parts[-1]
        part[0] += wait_s
        part[1] += own_s
        part[2] += 1

    def add_handover(self, seconds: float, cpu_s: float) -> None:
        """Of the newest wait, the seconds in which the batch was ready and on its way, and what this process computed."""
        self.handover_s += seconds
        self.handover_cpu_s += min(seconds, cpu_s)
        self.num_handovers += 1

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of waiting in parts of about equal length, in the order of time."""
        full = [part for part in self._parts if part[2] * 2 >= self._steps_per_part]
        return tuple(wait / max(wait + own, 1e-9) for wait, own, _ in full)

    @property
    def median_wait_s(self) -> float:
        """Median of the waits; see `_median`."""
        return _median(self._wait_counts, self._wait_sums)

    @property
    def median_own_s(self) -> float:
        """Median of the loop's own times; see `_median`."""
        return _median(self._own_counts, self._own_sums)

    def worst(self, share: float) -> tuple[int, float]:
        """Returns (number, seconds of waiting) of the worst steps: this share of all, at least one."""
        wanted = left = max(1, round(share * self.num_steps))
        total = 0.0
        for number, seconds in zip(reversed(self._wait_counts), reversed(self._wait_sums), strict=True):
            taken = min(number, left)
            total += seconds * taken / max(number, 1)
            left -= taken
            if not left:
                break
        return wanted, total

    def num_holding(self, share: float) -> int:
        """How many steps, longest waits first, hold this share of all waiting, to the nearest edge."""
        number, seconds = 0, 0.0
        for count, held_s in zip(reversed(self._wait_counts), reversed(self._wait_sums), strict=True):
            if seconds + held_s >= share * self.wait_s > 0:
                return number + math.ceil((share * self.wait_s - seconds) / held_s * count)
            number, seconds = number + count, seconds + held_s
        return number

    def num_longer(self, limit_s: float) -> int:
        """How many waits were longer, to the nearest edge."""
        return sum(self._wait_counts[bisect.bisect(EDGES, max(limit_s, FLOOR_S)) :])


class Longest:
    """The ten longest of many times."""

    def __init__(self) -> None:
        self._heap = [-1.0] * 10
        self.least_s = -1.0
        """Shorter ones need not be added."""

    def add(self, seconds: float) -> None:
        """Keeps it if it is one of them."""
        if seconds > self.least_s:
            heapq.heappushpop(self._heap, seconds)
            self.least_s = self._heap[0]

    @property
    def values(self) -> tuple[float, ...]:
        """Longest first."""
        return tuple(seconds for seconds in sorted(self._heap, reverse=True) if seconds >= 0)


def _median(counts: list[int], sums: list[float]) -> float:
    """The mean of what lies between the two edges around the median: off by no more than 19 %, of like times by far less."""
    half, seen = sum(counts) / 2, 0
    for number, seconds in zip(counts, sums, strict=True):
        seen += number
        if number and seen >= half:
            return seconds / number
    return 0.0
