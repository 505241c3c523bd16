"""Two speeds as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.doctor.evidence.speeds import SpeedRatio
from headrace.doctor.statistics.rounds import describe
from headrace.doctor.wording.paragraphs import labelled
from headrace.doctor.wording.samples import count

__all__ = ["render_speed", "speed_line"]


def render_speed(found: SpeedRatio, width: int = 80) -> str:
    """Returns the paragraph on speed, with a line break at its end."""
    return "\n".join(labelled("speed", "; ".join(_sentences(found)), width)) + "\n"


def speed_line(found: SpeedRatio) -> str:
    """Returns what is known, in a few words."""
    if found.ratio is None:
        return "not compared"
    times = f"x{found.ratio:.2f}{_between(found)}"
    return {
        "faster": f"B is faster: {times} of A",
        "slower": f"B is slower: {times} of A",
        "same": f"equally fast: B delivers {times} of A",
        "inconclusive": f"not told apart: B delivers {times} of A",
    }[found.outcome]


def _sentences(found: SpeedRatio) -> Iterator[str]:
    line = speed_line(found)
    yield line if found.ratio is not None or not found.why else f"{line}: {found.why}"
    if found.rates_a and found.rates_b:
        beside = f" in {count(found.num_blocks, 'block')} in turn" if found.num_blocks else ""
        yield f"A {_rate(found.rates_a)}, B {_rate(found.rates_b)}{beside}, each alone, starts of epochs in it"
    if found.noise is not None:
        yield f"two entries of A differed by up to {100 * (found.noise - 1):.1f} %"
    if found.ratio is not None and found.why:
        yield found.why
    if found.outcome == "inconclusive" and found.more_s:
        yield f"about {found.more_s:.0f} s more would settle it: a larger --budget"


def _between(found: SpeedRatio) -> str:
    return "" if found.interval is None else f" [{found.interval[0]:.2f}, {found.interval[1]:.2f}]"


def _rate(rates: Sequence[float]) -> str:
    middle = describe(rates).mean_per_s
    return f"{middle:,.0f} samples/s" if middle >= 100 else f"{middle:.3g} samples/s"
