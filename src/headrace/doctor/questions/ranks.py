"""Questions that the rules about ranks ask the same evidence. Pure."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import Ranks

__all__ = ["draws_again", "is_padding", "num_repeats", "share_text"]


def num_repeats(ranks: Ranks) -> int:
    """Samples that come once more than once, over all ranks of one epoch."""
    return sum(share.num_samples for share in ranks.shares) - ranks.num_union


def draws_again(ranks: Ranks) -> bool:
    """True if a single rank draws samples several times, as a sampler with replacement does: ranks then meet by chance."""
    return any(share.num_samples > share.num_different for share in ranks.shares)


def is_padding(ranks: Ranks) -> bool:
    """True if repeats are those that make ranks equally long: everything is covered, and they fill less than a batch each."""
    repeats, rows = num_repeats(ranks), ranks.num_rows or 0
    is_even = len({share.num_samples for share in ranks.shares}) == 1
    most = max(ranks.world_size - 1, 0)
    is_small = repeats <= most or (repeats < ranks.world_size * (ranks.batch_size or 1) and 2 * repeats <= rows)
    return repeats > 0 and is_even and is_small and ranks.num_union == rows


def share_text(part: int, whole: int) -> str:
    """`71%`, or `99.7%` where a whole percent would round to all or nothing."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f}%" if 99 < percent < 100 or 0 < percent < 1 else f"{percent:.0f}%"
