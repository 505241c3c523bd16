"""Measurement in, HTML out."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from headrace.doctor.measuring.against import Against
from headrace.doctor.measuring.against_text import NAMES as ARMS
from headrace.doctor.measuring.against_text import summary
from headrace.doctor.measuring.model import Estimate, Measurement, PlainRow
from headrace.doctor.measuring.page.memory import plot_memory
from headrace.doctor.measuring.page.rates import plot_ladder, plot_rounds, plot_stages
from headrace.doctor.measuring.page.steps import plot_lanes, plot_series, plot_step, plot_waits
from headrace.doctor.measuring.wording import bytes_text, gain, milliseconds, percent, rate, seconds_text, share
from headrace.doctor.report.templating import render_template
from headrace.doctor.statistics.interval import Interval
from headrace.errors import MissingExtra

__all__ = ["plots_of", "render_page", "render_short"]

_TEMPLATES = pathlib.Path(__file__).with_name("templates")
PLOTS: tuple[tuple[str, str, Callable[[Measurement], str | None]], ...] = (
    ("step", "Where the time of a step goes", plot_step),
    ("step", "How long steps wait", plot_waits),
    ("step", "One round of the loop, batch by batch", plot_series),
    ("supply", "Supply and need", plot_ladder),
    ("supply", "What each stage takes", plot_stages),
    ("supply", "Who worked when", plot_lanes),
    ("memory", "Memory over time", plot_memory),
    ("rounds", "Every round, in the order in which they ran", plot_rounds),
)
WORDS = {"healthy": "Nothing to fix", "limited": "Limited by data", "inconclusive": "Undecided", "supply": "Supply"}
TONES = {"healthy": "clean", "limited": "error", "inconclusive": "inconclusive", "supply": "info"}


def render_page(m: Measurement, against: Against | None = None) -> str:
    """Returns the whole page, which ends with a line break.

    Args:
        m: What to show.
        against: An earlier measurement to show it beside; None: none.

    Raises:
        MissingExtra: jinja2 is not installed. Without matplotlib there are tables only, and a line that says so.
    """
    plots, no_plots = plots_of(m)
    values = {**_common(m), "plots": plots, "no_plots": no_plots, "against": against, "summary": summary, "arms": ARMS}
    return render_template("measurement.html.j2", values, _TEMPLATES)


def render_short(m: Measurement) -> str:
    """Returns verdict and causes as a piece of HTML whose style touches nothing around it."""
    return render_template("measurement_short.html.j2", _common(m), _TEMPLATES)


def plots_of(m: Measurement) -> tuple[dict[str, list[tuple[str, str]]], str]:
    """(title, SVG) of each plot, by section; and why there are none."""
    found: dict[str, list[tuple[str, str]]] = {section: [] for section, _, _ in PLOTS}
    try:
        for section, title, plot in PLOTS:
            svg = plot(m)
            if svg is not None:
                found[section].append((title, svg))
    except MissingExtra as error:
        return {
            section: [] for section in found
        }, f"{error.what}: {'; '.join(error.do)}. The tables hold the same numbers."
    return found, ""


def _common(m: Measurement) -> dict[str, Any]:
    return {
        "m": m,
        "word": WORDS[m.conclusion.verdict],
        "tone": TONES[m.conclusion.verdict],
        "facts": _facts(m),
        "plain": [_plain(row) for row in m.plain],
        "parts": _parts(m),
        "gain": gain,
        "milliseconds": milliseconds,
        "percent": percent,
        "rate": rate,
        "share": share,
        "seconds": seconds_text,
        "bytes": bytes_text,
    }


def _facts(m: Measurement) -> list[tuple[str, str]]:
    cache = m.scope.cache
    found = [
        ("loader", m.kind),
        ("samples", "not told" if m.num_samples is None else f"{m.num_samples:,}"),
        ("batch size", str(m.batch_size or "not told")),
        ("workers", str(m.num_workers)),
        ("training step", (m.consumer or "none") + (" (emulated)" if m.is_emulated and "emulated" not in str(m.consumer) else "")),
        ("page cache", cache.label + (f" ({cache.why})" if cache.why else "")),
        ("usable cores", str(m.preflight.machine.usable_cores)),
        ("machine", m.preflight.noise),
        ("rounds", f"{len(m.runs)} in {m.used_s:.0f} s of {m.budget_s:.0f}"),
    ]  # fmt: skip
    if m.noise is not None:
        found.append(("two equal settings", f"{_ratio(m.noise)}"))
    return found


def _ratio(estimate: Estimate) -> str:
    interval = Interval(estimate.interval.low - 1, estimate.interval.high - 1)
    return f"differ by {gain(Estimate(value=estimate.value - 1, interval=interval))}"


def _plain(row: PlainRow) -> dict[str, Any]:
    middle = sorted(row.rates_per_s)[len(row.rates_per_s) // 2] if row.rates_per_s else None
    second = ""
    if row.unit is not None and row.units_per_s is not None:
        second = f"{row.units_per_s:,.3g} {row.unit}/s"
        if row.padding_share is not None:
            second += f", {percent(row.padding_share)} padding"
    return {
        "workers": row.num_workers,
        "epoch": row.epoch,
        "seconds": "  ".join(f"{one:.3g}" for one in row.seconds),
        "num_samples": f"{row.num_samples:,}",
        "rate": "" if middle is None else rate(middle).removesuffix(" samples/s"),
        "second": second,
        "checked": row.checked,
        "is_wrong": row.is_same is False,
        "cache": row.cache.label,
    }


def _parts(m: Measurement) -> Sequence[tuple[str, str, str]]:
    """Name, value and meaning of each number of the decomposition."""
    d = m.decomposition
    if d is None:
        return ()
    rows: list[tuple[str, str, str]] = [
        ("a step of the loop", milliseconds(d.total_s), "T(I)"),
        ("compute", milliseconds(d.compute_s), "T(C): the training step on a batch that is kept"),
    ]
    if d.transfer_s is not None:
        rows.append(("transfer", milliseconds(d.transfer_s), "T(Ct) - T(C)"))
    if d.interference_s is not None:
        rows.append(("interference", milliseconds(d.interference_s), "T(N) - T(C): the loader works beside the step"))
    rows.append(("waiting", milliseconds(d.waiting_s), "what is left"))
    if d.harmless_s is not None:
        rows.append(("harmless waiting", seconds_text(d.harmless_s), "hidden by the device's queue"))
    rows.append(
        ("accelerator utilisation", share(d.utilisation), "T(C) / T(I), as MLPerf Storage defines it; its line is 90 %")
    )
    rows.append(("headroom", share(d.headroom), "the most that work on data can win"))
    if d.supply_ratio is not None:
        told = "R(L) / R(C); from 1.25 on there is comfort" + (
            "" if d.is_supply_paired else "; of rounds that had no block in common"
        )
        rows.append(("supply over need", f"{d.supply_ratio.value:.2f}", told))
    if d.overlap is not None:
        rows.append(("overlap", f"{d.overlap:.2f}", "1 perfect, 0 serial, below 0: each slows the other"))
    if m.waiting is not None:
        named = ", ".join(f"p{100 * one.quantile:.0f} {seconds_text(one.wait_s)}" for one in m.waiting.quantiles)
        rows.append(
            ("waits", f"{named}, longest {seconds_text(m.waiting.longest_s)}", f"{share(m.waiting.share)} of the time")
        )
        rows.append(("worst 1 % of steps", percent(m.waiting.tail_share), "of all waiting"))
    return rows
