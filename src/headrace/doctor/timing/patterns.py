"""What the waits of a run look like: a batch that holds up others, a few steps that wait for most.

Pure: numbers in, numbers out. A pattern is no cause yet; what it would cost to be without it only an experiment says.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from headrace.doctor.timing.timed import BatchMade, Steps

__all__ = ["head_of_line_share", "tail_share"]

TAIL = 0.01
"""The worst steps: as many as a run of a hundred has one of."""


def head_of_line_share(
    steps: Steps, batches_made: Sequence[BatchMade], places: Collection[int] | None = None
) -> float | None:
    """Returns the part of all waiting during which the next batch was not ready and a later one was, 0 to 1.

    Near 1: the loop waits for the order, not for work; near 0: nothing was ready. First batches of epochs are left out.

    Args:
        steps: All of a run.
        batches_made: What workers noted of them.
        places: Steps whose waiting counts. Default: all.

    Returns:
        None: nothing was noted in workers. 0 if nobody waited.
    """
    made_s = {one.batch: one.made_s for one in batches_made}
    if not made_s:
        return None
    waited_s = blocked_s = 0.0
    later_s = math.inf
    for place in range(len(steps.got_s) - 1, -1, -1):  # from the end, so that the earliest later batch is known
        asked, got = steps.asked_s[place], steps.got_s[place]
        if _is_first(steps, place):
            later_s = math.inf  # another epoch's batches stand in no queue with these
            continue
        if places is None or place in places:
            waited_s += got - asked
            blocked_s += max(0.0, min(got, made_s.get(place, asked)) - max(asked, later_s))
        later_s = min(later_s, made_s.get(place, math.inf))
    return blocked_s / waited_s if waited_s > 0 else 0.0


def _is_first(steps: Steps, place: int) -> bool:
    return place == 0 or steps.epochs[place] != steps.epochs[place - 1]


def tail_share(waits_s: Sequence[float], *, worst: float = TAIL) -> float:
    """Returns the part of all waiting that the worst steps cause, at least one step; 0 if nobody waited.

    Near `worst`: all wait alike. Near 1: few steps wait, and all others do not.
    """
    total_s = sum(waits_s)
    num = max(1, round(worst * len(waits_s)))
    return sum(sorted(waits_s, reverse=True)[:num]) / total_s if total_s > 0 else 0.0
