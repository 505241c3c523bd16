"""Plots of a report as inline SVG, in the colours of the page that they stand in: light, dark or printed."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from headrace.doctor.report.model import Report
from headrace.errors import MissingExtra

__all__ = ["plot_runs", "plot_stages"]

WIDTH_IN = 7.2
"""Inches: with the text at 9 points it is about as large as the text of the page."""
BAR_IN = 0.27
MOST_BARS = 24
NAME_CHARS = 28

# Stand-ins that are replaced by the page's own colours: matplotlib knows nothing of style sheets.
COLOURS = {"#010203": "var(--ink)", "#040506": "var(--accent)", "#070809": "var(--warning)", "#0a0b0c": "var(--line)"}
INK, ACCENT, WARNING, LINE = COLOURS


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

    return _svg(draw, height_in=0.62 + BAR_IN * len(rows), salt=salt)


def _svg(draw: Callable[[Any], None], *, height_in: float, salt: str) -> str:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("plots need matplotlib", do="pip install 'headrace[report]'") from error
    settings: Any = {
        "svg.fonttype": "none",  # text stays text: it can be searched, and takes the font of the page
        "svg.hashsalt": salt,  # same report, same bytes; and no two plots of a page share an id
        "text.parse_math": False,  # names may hold dollars
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.edgecolor": LINE,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        "grid.color": LINE,
    }
    written = io.BytesIO()
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that matplotlib's font lacks: the page's font draws it
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0)
        axes.grid(axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _for_page(written.getvalue().decode())


def _for_page(svg: str) -> str:
    """The element alone, in the page's colours, as wide as there is room."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for stand_in, colour in COLOURS.items():
        svg = svg.replace(stand_in, colour)
    # matplotlib names fonts one by one, and black it does not name at all.
    svg = re.sub(r"font: (\d+px) [^;\"]*", r"font: \1 var(--sans)", svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.strip()


def _short(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 3]}..."
