"""Plots of a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.doctor.report.model import Report
from headrace.doctor.report.svg import ACCENT, INK, WARNING, draw_svg

__all__ = ["plot_runs", "plot_stages"]

BAR_IN = 0.27
MOST_BARS = 24
NAME_CHARS = 28


def plot_stages(report: Report) -> str | None:
    """Returns where the time of a sample goes, stage by stage; None if no stage was timed.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    rows = [
        (row.name, 1e3 * row.wall_s / row.num_samples, f"{row.num_samples:,} samples")
        for row in report.stages
        if row.wall_s is not None and row.num_samples
    ]
    return _bars(rows, "milliseconds for one sample, mean", [ACCENT] * len(rows), "stages")


def plot_runs(report: Report) -> str | None:
    """Returns how long each experiment took, those marked that ended early; None if none was run.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    rows = [(run.name, run.wall_s, "" if run.outcome == "done" else run.outcome) for run in report.runs]
    colours = [ACCENT if run.outcome == "done" else WARNING for run in report.runs]
    return _bars(rows, "seconds", colours, "runs")


def _bars(rows: Sequence[tuple[str, float, str]], unit: str, colours: Sequence[str], salt: str) -> str | None:
    """Horizontal bars, the first on top, each with its number and a remark."""
    rows = rows[:MOST_BARS]
    if not rows or not any(value > 0 for _, value, _ in rows):
        return None

    def draw(axes: Any) -> None:
        values = [value for _, value, _ in rows]
        places = range(len(rows))
        axes.barh(places, values, color=list(colours[: len(rows)]), height=0.62)
        axes.set_yticks(places, [_short(name) for name, _, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top; bars of one height, however many there are
        axes.set_xlim(0, max(values) * 1.32)  # room for the numbers behind the bars
        axes.set_xlabel(unit)
        for place, (_, value, remark) in enumerate(rows):
            told = f"{value:,.3g}" + (f" ({remark})" if remark else "")
            axes.annotate(told, (value, place), (5, 0), textcoords="offset points", va="center", color=INK)

    return draw_svg(draw, height_in=0.62 + BAR_IN * len(rows), salt=salt)


def _short(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 3]}..."
