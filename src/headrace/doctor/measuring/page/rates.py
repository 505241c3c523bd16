"""Plots of rates: supply against need, and every round."""

from __future__ import annotations

import math
from typing import Any

from headrace.doctor.measuring.model import Arm, Estimate, Measurement
from headrace.doctor.report.svg import ACCENT, CLEAN, ERROR, INK, LINE, QUIET, draw_svg

__all__ = ["plot_ladder", "plot_rounds", "plot_stages"]

OFF_SCALE = 3.0
"""Rates above so many times the greatest of need and supply end in an arrow: the rest would be too short to compare."""
NAMES = {
    "I": "the loop as it is",
    "C": "the training step alone",
    "Ct": "the training step, with the copy",
    "N": "the step beside the loader",
    "L": "the loader alone",
    "L0": "the loader with empty samples",
}


def plot_ladder(m: Measurement) -> str | None:
    """Need and supply as bars on one axis, with intervals; what the loader would deliver without each stage."""
    rows: list[tuple[str, float, float, float, str]] = []
    if m.need_per_s is not None:
        rows.append(("need, with a quarter more", *_spread(m.need_per_s), ERROR))
    arms = {arm.name: arm for arm in m.arms}
    rows += [(NAMES[name], *_of_arm(arms[name]), ACCENT) for name in ("I", "L") if name in arms]
    knocked_out = [arm for arm in m.arms if arm.name.startswith("L without ")]
    rows += [(arm.name.replace("L without", "the loader without"), *_of_arm(arm), CLEAN) for arm in knocked_out]
    if "L0" in arms:
        rows.append((NAMES["L0"], *_of_arm(arms["L0"]), QUIET))
    if len(rows) < 2:
        return None
    known = [value for name, value, *_ in rows if "without" not in name and "empty" not in name]
    most = OFF_SCALE * max(known or [value for _, value, *_ in rows])

    def draw(axes: Any) -> None:
        for row, (_, value, low, high, colour) in enumerate(rows):
            is_off = value > most
            axes.barh(row, min(value, most), color=colour, height=0.6)
            if not is_off and math.isfinite(high):
                axes.plot([low, min(high, most)], [row, row], color=INK, linewidth=1.2)
            told = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            told += "  off scale" if is_off else ""
            axes.annotate(
                told, (min(max(value, high if math.isfinite(high) else 0), most), row), (6, 0),
                textcoords="offset points", va="center", color=INK,
            )  # fmt: skip
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1.25 * min(most, max(value for _, value, *_ in rows)))
        axes.set_xlabel("samples per second; lines are 95 % intervals")

    return draw_svg(draw, height_in=0.62 + 0.27 * len(rows), salt="ladder")


def plot_rounds(m: Measurement) -> str | None:
    """Every round of every arm, in the order in which they ran: drift and outliers show."""
    began = [run.timed.began_s for run in m.runs if run.timed is not None]
    names = [name for name in dict.fromkeys(run.arm for run in m.runs) if _values(m, name)]
    if not began or not names:
        return None
    first = min(began)

    def draw(axes: Any) -> None:
        for row, name in enumerate(names):
            values = _values(m, name)
            middle = sorted(rate for _, rate, _ in values)[len(values) // 2]
            for began_s, rate, is_control in values:
                # Each arm on a scale of its own: the distance from its median, of which a line's height is a quarter.
                offset = max(-0.45, min(0.45, -(rate / middle - 1) / 0.25 * 0.45))
                axes.plot(
                    began_s - first, row + offset, "o", markersize=4, markerfacecolor="none" if is_control else ACCENT,
                    markeredgecolor=ACCENT,
                )  # fmt: skip
            axes.axhline(row, color=LINE, linewidth=0.6)
        axes.set_yticks(
            range(len(names)), [NAMES.get(name, name.replace("L without", "the loader without")) for name in names]
        )
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel("seconds; above its line: faster than its kind's median, half a row: by a quarter")

    return draw_svg(draw, height_in=0.62 + 0.3 * len(names), salt="rounds")


def plot_stages(m: Measurement) -> str | None:
    """What each stage takes for one sample: wall, and the part that computes."""
    if not m.stages:
        return None

    def draw(axes: Any) -> None:
        for row, stage in enumerate(m.stages):
            axes.barh(row, stage.wall_ms, color=ERROR if stage.is_limit else ACCENT, height=0.62, alpha=0.45)
            if stage.cpu_ms is not None:
                axes.barh(row, min(stage.cpu_ms, stage.wall_ms), color=ERROR if stage.is_limit else ACCENT, height=0.3)
            told = f"{stage.wall_ms:.3g} ms" + ("  the limit" if stage.is_limit else "")
            axes.annotate(told, (stage.wall_ms, row), (5, 0), textcoords="offset points", va="center", color=INK)
        axes.set_yticks(range(len(m.stages)), [stage.stage for stage in m.stages])
        axes.set_ylim(len(m.stages) - 0.5, -0.5)
        axes.set_xlim(0, 1.3 * max(stage.wall_ms for stage in m.stages))
        axes.set_xlabel("milliseconds for one sample; the inner bar is what it computes")

    return draw_svg(draw, height_in=0.62 + 0.29 * len(m.stages), salt="stages")


def _values(m: Measurement, arm: str) -> list[tuple[float, float, bool]]:
    """(began, rate, is the control) of each round of an arm that has a window."""
    return [
        (run.timed.began_s, run.timed.window.rate_per_s, run.is_control)
        for run in m.runs
        if run.arm == arm and run.timed is not None and run.timed.window is not None
    ]


def _of_arm(arm: Arm) -> tuple[float, float, float]:
    return arm.rounds.mean_per_s, arm.rounds.interval_per_s.low, arm.rounds.interval_per_s.high


def _spread(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.interval.low, estimate.interval.high
