"""Numbers as a report says them: with unit, and with the interval where there is one."""

from __future__ import annotations

import math

from headrace.doctor.measuring.model import Estimate
from headrace.doctor.statistics.interval import Interval

__all__ = ["bytes_text", "gain", "milliseconds", "percent", "rate", "seconds_text", "share"]


def percent(value: float) -> str:
    """`31 %`, `4.2 %`, `0.3 %`; from 10 times on `x12`."""
    if value >= 10:
        return f"x{1 + value:.0f}" if math.isfinite(value) else "without bound"
    return f"{100 * value:.0f} %" if abs(value) >= 0.0995 else f"{100 * value:.1f} %"


def share(estimate: Estimate) -> str:
    """`28 % [25, 31]`."""
    return f"{percent(estimate.value)}{_between(estimate.interval, 100.0)}"


def gain(estimate: Estimate) -> str:
    """`+32 % [25, 40]`; a great one as `x8.3`, `x190`."""
    if estimate.value >= 20 and math.isfinite(estimate.value):
        return f"x{1 + estimate.value:,.0f}"
    if estimate.value >= 4:
        return f"x{1 + estimate.value:.1f}" if math.isfinite(estimate.value) else "without bound"
    sign = "+" if estimate.value >= 0 else ""
    return f"{sign}{percent(estimate.value)}{_between(estimate.interval, 100.0)}"


def milliseconds(estimate: Estimate) -> str:
    """`148 ms [140, 155]`."""
    return f"{_short(1e3 * estimate.value)} ms{_between(estimate.interval, 1e3)}"


def rate(value: float, interval: Interval | None = None) -> str:
    """`1,280 samples/s +-2 %`."""
    number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if interval is None or not math.isfinite(interval.high) or value <= 0 or interval.low <= 0:
        return f"{number} samples/s"
    reach = math.sqrt(interval.high / interval.low) - 1
    return f"{number} samples/s +-{100 * reach:.0f} %"


def seconds_text(value: float) -> str:
    """`40 ms`, `1.3 s`, `2 min`."""
    if value < 0.9995:
        return f"{_short(1e3 * value)} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


def bytes_text(value: float) -> str:
    """`48 MiB`, `1.2 GiB`."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:.1f} {unit}" if value < 10 * size else f"{value / size:,.0f} {unit}"
    return f"{value:.0f} B"


def _short(value: float) -> str:
    """Two or three digits that mean something."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"


def _between(interval: Interval, times: float) -> str:
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return ""
    low, high = _short(times * interval.low), _short(times * interval.high)
    return f" [{low}, {high}]"
