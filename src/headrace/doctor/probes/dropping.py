"""Finds the samples that a collate function leaves out: with them the batch is the same as without them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from headrace.contract.view import as_array, flatten
from headrace.doctor.probes.content import Content, content_of

__all__ = ["find_dropped", "made_of"]

MAX_PAIRS = 12
"""Pairs that are tried to find two samples that stay: bad samples are few, or none stays."""

Join = Callable[[list[Any]], Any]


def find_dropped(join: Join, samples: Sequence[Any], keep_going: Callable[[], bool]) -> tuple[list[int], int]:
    """Returns the places of the samples that are left out, and how many were tried.

    Args:
        join: The collate function, under the same random state at each call.
        samples: Samples, any of them None.
        keep_going: False when time is up.
    """
    staying = _one_that_stays(join, samples)
    if staying is None:
        return [], 0
    alone = _content(join, [samples[staying]])
    dropped, num_tried = list[int](), 0
    for place, sample in enumerate(samples):
        if not keep_going():
            break
        num_tried += 1
        if place == staying:
            continue
        # Behind and before: some collate functions look at the first sample only.
        both = [_content(join, pair) for pair in ([samples[staying], sample], [sample, samples[staying]])]
        if alone is not None and all(one is not None and _is_same(one, alone) for one in both):
            dropped.append(place)
    return dropped, num_tried


def made_of(join: Join, sample: Any) -> str:
    """Says what collate makes of a batch of this sample alone."""
    try:
        batch = join([copy.deepcopy(sample)])
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0][:120]
    if batch is None:
        return "None"
    sizes = [len(array) for _, value in flatten(batch) if (array := as_array(value)) is not None and array.ndim]
    empty = not list(flatten(batch)) or (isinstance(batch, (list, tuple, dict)) and not batch)
    return "a batch of 0" if empty or (sizes and max(sizes) == 0) else "a batch"


def _one_that_stays(join: Join, samples: Sequence[Any]) -> int | None:
    """A sample that another one's batch is not the same without."""
    places = [place for place, sample in enumerate(samples) if sample is not None]
    for first, second in list(itertools.pairwise(places))[:MAX_PAIRS]:
        one, other, both = (
            _content(join, chosen)
            for chosen in ([samples[first]], [samples[second]], [samples[first], samples[second]])
        )
        is_needed = one is not None and both is not None and not _is_same(one, both)
        if is_needed and both is not None and (other is None or not _is_same(other, both)):
            return first
    return None


def _content(join: Join, samples: list[Any]) -> Content | None:
    try:
        return content_of(join([_copied(sample) for sample in samples]))
    except Exception:
        return None


def _copied(sample: Any) -> Any:
    try:
        return copy.deepcopy(sample)
    except Exception:
        return sample


def _is_same(one: Content, other: Content) -> bool:
    return one.digests == other.digests and None not in one.digests.values()
