"""How findings speak of samples: counts with the right verb, shares of what was examined, shapes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.doctor.evidence import SampleReads
from headrace.errors import SampleId

__all__ = ["count", "listing", "named", "quoted", "shape_text", "share", "verb"]

LONGEST_QUOTE = 160
"""Characters of a foreign message that a finding repeats: two lines of a terminal."""


def count(number: int, noun: str) -> str:
    """Returns `1 sample`, `1,797 samples`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def verb(number: int, singular: str, plural: str) -> str:
    """Returns the form that fits a subject like `1 of 64 samples`."""
    return singular if number == 1 else plural


def share(number: int, seen: SampleReads) -> str:
    """Returns `2 of 64 examined samples`, `all 4 examined samples`; `2 of 64 samples` after a full scan."""
    total = len(seen.reads)
    kind = "samples" if seen.is_full else "examined samples"
    if number == total:
        return f"all {total:,} {kind}" if total > 1 else f"the only {kind[:-1]}"
    return f"{number:,} of {total:,} {kind}"


def listing(ids: Collection[SampleId], limit: int = 5) -> str:
    """Returns the first ids, joined by commas, and how many more there are."""
    shown = ", ".join(str(sample_id) for sample_id in list(ids)[:limit])
    return shown if len(ids) <= limit else f"{shown} and {len(ids) - limit:,} more"


def named(ids: Sequence[SampleId]) -> str:
    """Returns `(sample 7.png)` for one sample, `(first sample 7.png)` for several."""
    return f"(sample {ids[0]})" if len(ids) == 1 else f"(first sample {ids[0]})"


def shape_text(shape: Sequence[int]) -> str:
    """Returns a shape as torch prints it: `[3, 16, 16]`; `[]` for a single number."""
    return f"[{', '.join(str(size) for size in shape)}]"


def quoted(error_type: str | None, message: str | None) -> str:
    """Returns `OSError: image file is truncated`, on one line and cut to a readable length."""
    text = ": ".join(part for part in (error_type, " ".join((message or "").split())) if part)
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 3]}..."
