"""Plots of steps: where their time goes, how long they wait, and who worked meanwhile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.doctor.measuring.model import Estimate, Measurement
from headrace.doctor.report.svg import ACCENT, CLEAN, ERROR, INFO, INK, LINE, QUIET, WARNING, draw_svg
from headrace.doctor.timing.timed import Timed

__all__ = ["plot_lanes", "plot_series", "plot_step", "plot_waits"]

MOST_LANES = 200
"""Batches in the swim-lanes: more would be lines, not bars."""
MOST_POINTS = 2000
"""Steps of a series that are drawn: a page holds no more than can be seen."""
LEAST_MS = 0.01
"""Shorter waits are drawn as this: their number matters, not their length."""


def plot_step(m: Measurement) -> str | None:
    """Compute, transfer, interference and waiting of one step, one behind the other; None: there is no training step."""
    d = m.decomposition
    if d is None:
        return None
    parts: list[tuple[str, Estimate | None, str]] = [
        ("compute", d.compute_s, CLEAN),
        ("transfer", d.transfer_s, INFO),
        ("interference", d.interference_s, WARNING),
        ("waiting", d.waiting_s, ERROR),
    ]
    shown = [(name, part, colour) for name, part, colour in parts if part is not None]

    def draw(axes: Any) -> None:
        at = 0.0
        for row, (_, part, colour) in enumerate(shown):
            length = 1e3 * max(part.value, 0.0)
            axes.barh(row, length, left=at, color=colour, height=0.55)
            at += length
            low, high = part.interval.low, part.interval.high
            reach = ""
            if math.isfinite(low) and math.isfinite(high):
                reach = f" [{1e3 * low:.3g}, {1e3 * high:.3g}]"
                begin = at - length
                axes.plot([begin + 1e3 * low, begin + 1e3 * high], [row, row], color=INK, linewidth=1.2)
            end = max(at, at - length + 1e3 * high) if math.isfinite(high) else at
            axes.annotate(
                f"{1e3 * part.value:.3g} ms{reach}",
                (end, row),
                (6, 0),
                textcoords="offset points",
                va="center",
                color=INK,
            )
        axes.set_yticks(range(len(shown)), [name for name, _, _ in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlim(min(0.0, *(1e3 * part.value for _, part, _ in shown)), 1.35 * max(at, 1e3 * d.total_s.value))
        axes.set_xlabel("milliseconds of one step; lines are 95 % intervals")

    return draw_svg(draw, height_in=0.62 + 0.36 * len(shown), salt="step")


def plot_waits(m: Measurement) -> str | None:
    """How many steps wait how long, over all rounds of the real loop."""
    waits = [wait for timed in _loops(m) for wait in _steady_waits(timed)]
    if not waits:
        return None
    shown = np.maximum(1e3 * np.asarray(waits), LEAST_MS)

    def draw(axes: Any) -> None:
        bins = np.geomspace(LEAST_MS, max(float(shown.max()), 10 * LEAST_MS), 40)
        axes.hist(shown, bins=bins, color=ACCENT)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain_number)
        axes.xaxis.set_minor_formatter("")
        axes.set_xlabel(f"milliseconds that a step waited; {len(waits):,} steps, epoch starts apart")
        axes.set_ylabel("steps")

    return draw_svg(draw, height_in=2.2, salt="waits", grid="y")


def plot_series(m: Measurement) -> str | None:
    """The waits of one round of the real loop in their order; lines mark where epochs begin."""
    timed = next(iter(_loops(m)), None)
    if timed is None or not timed.steps.asked_s:
        return None
    steps = timed.steps
    every = max(1, len(steps.asked_s) // MOST_POINTS)
    waits = np.maximum(1e3 * np.asarray(steps.waits_s), LEAST_MS)
    begins = [at for at, epoch in enumerate(steps.epochs) if at and epoch != steps.epochs[at - 1]]

    def draw(axes: Any) -> None:
        places = np.arange(0, len(waits), every)
        axes.plot(places, waits[places], ".", markersize=2.5, color=ACCENT)
        for at in begins:
            axes.axvline(at, color=WARNING, linewidth=0.8)
        if timed.window is not None:
            for edge in (timed.window.first, timed.window.last):
                axes.axvline(edge, color=QUIET, linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_plain_number)
        axes.yaxis.set_minor_formatter("")
        axes.set_xlabel("batch; dotted: the part that counts" + ("; orange: an epoch begins" if begins else ""))
        axes.set_ylabel("ms waited")

    return draw_svg(draw, height_in=2.2, salt="series", grid="y")


def plot_lanes(m: Measurement) -> str | None:
    """For each worker, when it made each batch and how long that then lay ready; on top, when the loop waited."""
    timed = next((timed for timed in _accounted(m) if timed.batches_made), None)
    if timed is None:
        return None
    steps = timed.steps
    first = 0 if timed.window is None else timed.window.first
    made = [one for one in timed.batches_made if first <= one.batch < min(first + MOST_LANES, len(steps.got_s))]
    if not made:
        return None
    begin = min(*(one.began_s for one in made), steps.asked_s[first])
    workers = sorted({one.worker for one in made})
    lanes = {worker: 1 + place for place, worker in enumerate(workers)}

    def draw(axes: Any) -> None:
        taken = [one.batch for one in made]
        axes.barh(
            [0] * len(taken),
            [steps.got_s[at] - steps.asked_s[at] for at in taken],
            left=[steps.asked_s[at] - begin for at in taken],
            color=ERROR,
            height=0.6,
        )
        for one in made:
            lane = lanes[one.worker]
            axes.barh(
                lane,
                one.made_s - one.began_s,
                left=one.began_s - begin,
                color=ACCENT,
                height=0.6,
                edgecolor=LINE,
                linewidth=0.6,
            )
            ready_s = max(0.0, steps.got_s[one.batch] - one.made_s)
            axes.barh(lane, ready_s, left=one.made_s - begin, color=LINE, height=0.25, linewidth=0)
        axes.set_yticks([0, *lanes.values()], ["the loop waits", *(f"worker {worker}" for worker in workers)])
        axes.set_ylim(len(workers) + 0.6, -0.6)
        axes.set_xlabel(f"seconds; {len(made)} batches: made, then (thin) ready and not yet taken")

    return draw_svg(draw, height_in=0.7 + 0.3 * (1 + len(workers)), salt="lanes")


def _plain_number(value: float, _: int) -> str:
    """`0.01`, `10`: matplotlib writes powers of ten as formulas."""
    return f"{value:g}"


def _loops(m: Measurement) -> list[Timed]:
    return [run.timed for run in m.runs if run.arm == "I" and run.timed is not None]


def _accounted(m: Measurement) -> list[Timed]:
    return [run.timed for run in m.runs if run.arm.endswith("accounted") and run.timed is not None]


def _steady_waits(timed: Timed) -> list[float]:
    """Waits of the part that counts, without those of first batches of epochs."""
    if timed.window is None:
        return []
    steps, epochs = timed.steps, timed.steps.epochs
    return [
        steps.got_s[at] - steps.asked_s[at]
        for at in range(timed.window.first, timed.window.last)
        if at and epochs[at] == epochs[at - 1]
    ]
