"""The plain table: no workers, the present number, and a second epoch; what was checked, and what it comes to in words."""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from headrace.doctor.measuring.model import PlainRow, RoundRun
from headrace.doctor.meters.page_cache import CacheLabel
from headrace.doctor.timing.timed import Timed

__all__ = ["Checked", "fewer_are_faster", "plain_rows", "plain_says", "rate_with"]

ARM = re.compile(r"plain workers=(\d+)")
SAME = 1.1
"""Medians closer than this are told as "about as fast": three rounds tell no less."""
FEWEST_PASSES = 4
"""Epochs of each: of four against four, all of one kind are faster by chance once in seventy times."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of the comparison of a number of workers with none."""

    text: str
    is_same: bool | None


def plain_rows(runs: Sequence[RoundRun], checked: Mapping[int, Checked], cache: CacheLabel) -> tuple[PlainRow, ...]:
    """One row per number of workers and epoch, of the rounds named `plain workers=N`.

    Args:
        runs: All rounds.
        checked: What was compared, by number of workers; the row of 0 workers is the reference.
        cache: Under which they ran.
    """
    rows = []
    by_number: dict[int, list[Timed]] = {}
    for run in runs:
        name = ARM.fullmatch(run.arm)
        if name is not None and run.timed is not None and run.timed.steps.got_s:
            by_number.setdefault(int(name[1]), []).append(run.timed)
    for number, rounds in sorted(by_number.items()):
        for epoch in (0, 1):
            told = [_epoch(timed, epoch) for timed in rounds if epoch in timed.steps.epochs]
            if not told:
                continue
            reference = Checked(text="the reference", is_same=True)
            other = "not compared: only the present number of workers is" if checked else "not compared"
            found = reference if number == 0 else checked.get(number, Checked(text=other, is_same=None))
            unit, per_sample, padding = _unit(rounds[0])
            rates = tuple(one.rate_per_s for one in told)
            rows.append(
                PlainRow(
                    num_workers=number,
                    epoch=epoch + 1,
                    seconds=tuple(one.seconds for one in told),
                    num_samples=told[0].num_samples,
                    start_s=statistics.median(one.start_s for one in told),
                    rates_per_s=rates,
                    unit=unit,
                    units_per_s=None if unit is None else per_sample * statistics.median(rates),
                    padding_share=padding,
                    checked=found.text,
                    is_same=found.is_same,
                    cache=cache,
                )
            )
    return tuple(rows)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One epoch of one round."""

    seconds: float
    num_samples: int
    start_s: float
    rate_per_s: float


def _epoch(timed: Timed, epoch: int) -> _Pass:
    """From asking for an iterator to the last batch."""
    steps = timed.steps
    places = [at for at, number in enumerate(steps.epochs) if number == epoch]
    make_s = next((start.make_s for start in timed.starts if start.epoch == epoch), 0.0)
    first, last = places[0], places[-1]
    seconds = max(make_s + steps.got_s[last] - steps.asked_s[first], 1e-9)
    num_samples = sum(steps.num_samples[at] for at in places)
    # Workers begin together, so the first batch of each is there at once: the rate counts from the last of them on.
    skip = min(max(1, timed.num_workers), max(1, len(places) // 2))
    after = places[skip:]
    rate = num_samples / seconds
    if after and steps.got_s[last] > steps.got_s[places[skip - 1]]:
        rate = sum(steps.num_samples[at] for at in after) / (steps.got_s[last] - steps.got_s[places[skip - 1]])
    start_s = make_s + steps.got_s[first] - steps.asked_s[first]
    return _Pass(seconds=seconds, num_samples=num_samples, start_s=start_s, rate_per_s=rate)


def _unit(timed: Timed) -> tuple[Literal["Mpixel", "token", "MB"] | None, float, float | None]:
    amounts, num = timed.amounts, max(1, timed.amounts.num_samples)
    if amounts.num_tokens:
        return "token", amounts.num_tokens / num, amounts.padding_share
    if amounts.num_pixels:
        return "Mpixel", amounts.num_pixels / num / 1e6, None
    return ("MB", amounts.num_bytes / num / 1e6, None) if amounts.num_bytes else (None, 0.0, None)


def rate_with(rows: Sequence[PlainRow], num_workers: int, *, epoch: int = 2) -> float | None:
    """Median samples per second of a row; of the last epoch there is, if that one was not reached."""
    own = [row for row in rows if row.num_workers == num_workers and row.epoch <= epoch]
    return statistics.median(own[-1].rates_per_s) if own else None


def plain_says(rows: Sequence[PlainRow]) -> str:
    """The table in one or two sentences."""
    numbers = sorted({row.num_workers for row in rows})
    if not rows:
        return ""
    if numbers == [0]:
        return "Without workers only: nothing to compare with."
    if 0 not in numbers:
        return "Without workers it could not run: there is no reference."
    told = []
    reference = rate_with(rows, 0)
    for number in numbers[1:]:
        rate = rate_with(rows, number)
        different = [row for row in rows if row.num_workers == number and row.is_same is False]
        if different:
            told.append(f"{_workers(number)} deliver other data than none: how fast they are says nothing.")
        elif rate is not None and reference is not None:
            told.append(_compared(rows, number, rate / reference, rate, reference))
    return " ".join(told)


def _compared(rows: Sequence[PlainRow], number: int, gain: float, rate: float, reference: float) -> str:
    """What a number of workers brings, and what starting them costs."""
    start_s = _start_s(rows, number)
    own = [one for row in rows if row.num_workers == number for one in row.rates_per_s]
    none = [one for row in rows if row.num_workers == 0 for one in row.rates_per_s]
    is_always = max(own) < min(none) if gain < 1 else min(own) > max(none)
    if not is_always and not 1 / SAME <= gain < SAME:
        return f"{_workers(number)} gave x{gain:.2f} of the rate without, but not in every round."
    if gain < 1 / SAME:
        return f"{_workers(number)} cost more than they bring: x{gain:.2f} of the rate without."
    if gain < SAME:
        return f"{_workers(number)} are about as fast as none (x{gain:.2f}), and cost {start_s:.1f} s to start."
    pays_after = start_s / (1 / reference - 1 / rate)
    after = f", which pays off after {_round(pays_after):,} samples" if start_s >= 0.05 else ""
    return f"{_workers(number)} bring x{gain:.1f}; they cost {start_s:.1f} s to start{after}."


def _start_s(rows: Sequence[PlainRow], number: int) -> float:
    """How much later the first batch of an epoch is there than without workers."""
    first = {row.num_workers: row.start_s for row in rows if row.epoch == 1}
    return max(0.0, first.get(number, 0.0) - first.get(0, 0.0))


def fewer_are_faster(rows: Sequence[PlainRow], num_workers: int) -> tuple[int, float] | None:
    """(The smaller number of workers that was faster in every epoch of every round, by which factor); None: there is none."""
    own = [rate for row in rows if row.num_workers == num_workers for rate in row.rates_per_s]
    best = None
    for number in sorted({row.num_workers for row in rows if row.num_workers < num_workers}):
        other = [rate for row in rows if row.num_workers == number for rate in row.rates_per_s]
        if len(own) < FEWEST_PASSES or len(other) < FEWEST_PASSES or min(other) <= max(own):
            continue
        factor = statistics.median(other) / statistics.median(own)
        if factor >= SAME and (best is None or factor > best[1]):
            best = (number, factor)
    return best


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"


def _round(number: float) -> int:
    """Two digits say what such a number is good for."""
    if number < 100:
        return math.ceil(number)
    place = 10 ** (int(math.log10(number)) - 1)
    return int(round(number / place) * place)
