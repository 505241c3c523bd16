"""A plot as inline SVG, in the colours of the page that it stands in: light, dark or printed."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any, Literal

from headrace.errors import MissingExtra

__all__ = ["ACCENT", "CLEAN", "ERROR", "INFO", "INK", "LINE", "QUIET", "WARNING", "draw_svg"]

WIDTH_IN = 7.2
"""Inches: with the text at 9 points it is about as large as the text of the page."""

# Stand-ins that are replaced by the page's own colours: matplotlib knows nothing of style sheets.
COLOURS = {
    "#010203": "var(--ink)",
    "#040506": "var(--accent)",
    "#070809": "var(--warning)",
    "#0a0b0c": "var(--line)",
    "#0d0e0f": "var(--error)",
    "#101112": "var(--clean)",
    "#131415": "var(--info)",
    "#161718": "var(--quiet)",
}
INK, ACCENT, WARNING, LINE, ERROR, CLEAN, INFO, QUIET = COLOURS


def draw_svg(draw: Callable[[Any], None], *, height_in: float, salt: str, grid: Literal["x", "y", "both"] = "x") -> str:
    """Returns a plot as an SVG element that takes the page's colours and font, and as much width as there is.

    Args:
        draw: Draws into matplotlib's axes, in the colours of this module only.
        height_in: Inches.
        salt: A name of its own on the page: ids inside are made of it.
        grid: Along which axis there are lines.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
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
        axes.grid(axis=grid, linewidth=0.6)
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
