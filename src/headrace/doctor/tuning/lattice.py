"""Which settings are worth a try: a small set around the present one, in two steps.

First the knobs that can change the rate by a factor: the number of workers, who reads a batch, whose loader it is. Then, around
the best of those, the knobs that polish: batches prepared ahead, workers that stay, how they start, pinned memory. Each knob is
turned alone, so that a gain has one cause.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.facts import LoaderNow

__all__ = ["coarse", "fine", "most_workers", "worker_numbers"]

PREFETCH = (1, 2, 4, 8)
"""Down as well: what is prepared ahead takes memory that nobody sees in a process list."""
BEYOND_CORES = 4
"""Workers that sleep may be so many times the cores: eight on two cores hide three quarters of a wait."""


def most_workers(facts: LoaderNow, *, given: int | None, computing_share: float | None) -> int:
    """Returns the greatest number of workers that is tried.

    Args:
        facts: The loader as it is.
        given: `--workers-max`; it wins, whatever it is.
        computing_share: Part of the time of whoever prepares samples in which it computes; None: not known. Workers that
            compute all the time only take turns if they are more than the cores; of those that wait half of the time for
            something else, two share a core.
    """
    if given is not None:
        return given
    share = 1.0 if computing_share is None else max(computing_share, 1 / BEYOND_CORES)
    return math.ceil(facts.num_cores / share)


def worker_numbers(most: int) -> tuple[int, ...]:
    """Returns 0, 1, 2, 4, ... and the greatest.

    >>> worker_numbers(6)
    (0, 1, 2, 4, 6)
    """
    numbers, number = [0], 1
    while number < most:
        numbers.append(number)
        number *= 2
    return (*numbers, most) if most else (0,)


def coarse(facts: LoaderNow, *, most: int) -> tuple[Setting, ...]:
    """Returns the settings of the first step, the simplest first; the present one is not among them.

    Args:
        facts: The loader as it is.
        most: See `most_workers`.
    """
    if "workers" in facts.cannot:
        return ()
    numbers = worker_numbers(most)
    found = [Setting(num_workers=number) for number in numbers]
    if facts.can_read_batches:
        now = min(facts.present.num_workers or 0, most)
        found += [Setting(num_workers=number, reads_batches=True) for number in sorted({0, now})]
    if _fits_headrace(facts):
        found += [
            Setting(num_workers=number, loader="headrace") for number in sorted({numbers[-1], max(numbers[-1] // 2, 1)})
        ]
    return _distinct(facts, found)


def fine(facts: LoaderNow, best: Setting) -> tuple[Setting, ...]:
    """Returns the settings of the second step: one more knob turned, at the best setting of the first.

    Args:
        facts: The loader as it is.
        best: What was best so far, as a change of the present setting.
    """
    if "workers" in facts.cannot or facts.library == "other":
        return ()
    whole = facts.under(best)
    found: list[Setting] = []
    if whole.num_workers:
        found += [_with(best, prefetch_factor=number) for number in PREFETCH]
        found += [_with(best, persistent_workers=True)]
        if whole.start_method == "spawn" and whole.loader is None and facts.library == "torch":
            # What pickles for the one pickles for the other. Fork is never advised: whoever left it had threads or a device.
            found += [_with(best, start_method="forkserver")]
        if facts.library == "headrace" or whole.loader == "headrace":
            found += [_with(best, runner="threads"), _with(best, runner="processes")]
    if facts.has_device and not whole.pin_memory:
        found += [_with(best, pin_memory=True)]
    known = facts.difference(best)
    return tuple(one for one in _distinct(facts, found) if one != known)


def _fits_headrace(facts: LoaderNow) -> bool:
    return facts.library == "torch" and "loader" not in facts.cannot


def _with(setting: Setting, **more: object) -> Setting:
    return dataclasses.replace(setting, **more)  # type: ignore[arg-type] # names of its own fields


def _distinct(facts: LoaderNow, found: Iterable[Setting]) -> tuple[Setting, ...]:
    """Each real change once, without the present setting."""
    return tuple(dict.fromkeys(one for one in map(facts.difference, found) if one != AS_IT_IS))
