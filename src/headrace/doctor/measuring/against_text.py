"""The comparison with an earlier measurement as text."""

from __future__ import annotations

from headrace.doctor.measuring.against import Against
from headrace.doctor.measuring.wording import percent
from headrace.doctor.wording.paragraphs import LABEL, labelled

__all__ = ["render_against", "summary"]

NAMES = {"I": "the loop", "C": "the training step", "L": "the loader alone"}


def render_against(found: Against, *, width: int = 80) -> str:
    """Returns the lines, ending with a line break."""
    lines = labelled("AGAINST", summary(found), width)
    for text in found.differs:
        lines += labelled("", f"not comparable, {text}", width)
    for one in found.ratios:
        low, high = one.change.interval.low, one.change.interval.high
        then, now = (percent(one.then.value), percent(one.now.value))
        if one.name == "supply over need":
            then, now = f"{one.then.value:.2f}", f"{one.now.value:.2f}"
        told = f"{one.name:<24} {then:>6} -> {now:<6}  x{one.change.value:.2f} [{low:.2f}, {high:.2f}]  {one.outcome}"
        lines.append(f"{'':<{LABEL}}{told}")
    for text in found.changed:
        lines += labelled("", text, width)
    rates = [
        f"{NAMES[name]} {'-' if then is None else f'{then:,.0f}'} -> {'-' if now is None else f'{now:,.0f}'}"
        for name, then, now in found.rates
    ]
    if rates:
        told = f"samples/s, shown and not judged, since machines and moments differ: {', '.join(rates)}"
        lines += labelled("", told, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def summary(found: Against) -> str:
    """One sentence."""
    before = f"the report of {found.created} ({found.verdict_then}"
    before += f": {', '.join(found.causes_then)})" if found.causes_then else ")"
    return {
        "worse": f"worse than {before}",
        "better": f"better than {before}",
        "same": f"the same as {before}",
        "not told": f"nothing can be said against {before}",
    }[found.outcome]
