"""Holds a resumed run against the whole one, step by step. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from headrace.doctor.resume.steps import Step, epoch_starts, is_same_loss
from headrace.errors import SampleId

__all__ = ["compare", "compare_without_whole"]

FEWEST = 2
"""Equal steps that prove where a run went on; one may be chance if batches are small."""


def compare(whole: Sequence[Step], resumed: Sequence[Step], at: int, *, with_losses: bool) -> dict[str, Any]:
    """Returns what a ResumeTrial says of the two, as its fields.

    A run may go on from an earlier step than the one where it was interrupted, with which it saved last, and takes the
    steps since then again.

    Args:
        whole: Steps of the uninterrupted run.
        resumed: Steps of the run that went on.
        at: Steps before the interruption.
        with_losses: Whether losses are compared; they are not if two whole runs differ in them.
    """
    starts = list(range(min(at, len(whole) - 1), -1, -1))
    if not resumed:
        return {"resumed_from": None, "num_compared": 0, "differs": "failed", "error": "it took no step"}
    for start in starts:
        if _first(whole, resumed, start, with_losses=with_losses) is None:
            is_anew = start == 0 and at > 0
            return {
                "resumed_from": start,
                "num_compared": min(len(resumed), len(whole) - start),
                "differs": "anew" if is_anew else "nothing",
                "first_difference": 0 if is_anew else None,
            }
    # The start with the most equal samples; of several the latest, which comes first.
    start = max(starts, key=lambda one: (_num_equal(whole, resumed, one), one == at))
    num_equal = _num_equal(whole, resumed, start)
    wanted = 1 if start == at else min(FEWEST, len(resumed), len(whole) - start)
    first = _first(whole, resumed, start, with_losses=with_losses)
    assert first is not None
    # Samples of an earlier step with another loss than then: the model went on, and the loader began again.
    went_back = start != at and first == 0
    if num_equal >= wanted and whole[start].ids and not went_back:
        if first < num_equal:
            return _loss_difference(whole, resumed, start, first)
        # It went on rightly and went wrong later, as when a second epoch begins.
        later = compare_epoch(whole, resumed[first:], start + first)
        return {**later, "resumed_from": start, "num_compared": len(resumed), "first_difference": start + first}
    if not any(step.ids for step in whole):
        return _loss_difference(whole, resumed, min(at, len(whole) - 1), 0)
    return {
        **compare_epoch(whole, resumed, at),
        "resumed_from": None,
        "num_compared": len(resumed),
        "first_difference": at,
    }


def _loss_difference(whole: Sequence[Step], resumed: Sequence[Step], start: int, first: int) -> dict[str, Any]:
    mine, theirs = whole[start + first], resumed[first]
    return {
        "resumed_from": start,
        "num_compared": min(len(resumed), len(whole) - start),
        "differs": "loss",
        "first_difference": start + first,
        "steps_until_loss": first,
        "losses": (mine.losses[0], theirs.losses[0]) if mine.losses and theirs.losses else None,
    }


def compare_epoch(whole: Sequence[Step], resumed: Sequence[Step], at: int) -> dict[str, Any]:
    """Says how the rest of an epoch differs: what came again, what never came, in which order."""
    starts = epoch_starts(whole)
    begin = max(start for start in starts if start <= at)
    end = min((start for start in starts if start > at), default=len(whole))
    seen, rest = _ids(whole[begin:at]), _ids(whole[at:end])
    is_whole_epoch = end < len(whole)
    found = _shares(seen, rest, resumed, is_whole_epoch=is_whole_epoch)
    return {**found, "order_of_epoch": _order_of(whole, resumed)}


def compare_without_whole(interrupted: Sequence[Step], resumed: Sequence[Step]) -> dict[str, Any]:
    """The same where no whole run can serve as measure: a sample that came before the interruption must not come again.

    Only a run that brings less than a whole epoch is judged: one that begins the epoch again may take it all again.
    """
    begin = epoch_starts(interrupted)[-1]
    seen = _ids(interrupted[begin:])
    starts = epoch_starts(resumed)
    end = starts[1] if len(starts) > 1 else len(resumed)
    again = [one for one in _ids(resumed[:end]) if one in set(seen)]
    is_rest = len(starts) > 1 and end < _epoch_length(interrupted, resumed)
    fields: dict[str, Any] = {"resumed_from": len(interrupted), "num_compared": end, "differs": "nothing"}
    if again and is_rest:
        fields |= {
            "differs": "samples",
            "first_difference": len(interrupted),
            "num_repeated": len(again),
            "num_missing": len(again),
            "sample_ids": tuple(again[:5]),
            "is_right_number": end + len(interrupted) - begin == _epoch_length(interrupted, resumed),
        }
    return fields


def _epoch_length(*runs: Sequence[Step]) -> int:
    """Steps of a whole epoch, as far as any run shows one."""
    longest = 0
    for run in runs:
        starts = [*epoch_starts(run), len(run)]
        longest = max(longest, *(after - before for before, after in itertools.pairwise(starts)))
    return longest


def _first(whole: Sequence[Step], resumed: Sequence[Step], start: int, *, with_losses: bool) -> int | None:
    """The first of the resumed steps that differs; None: none does."""
    for number, (mine, theirs) in enumerate(zip(whole[start:], resumed, strict=False)):
        if mine.ids != theirs.ids or (with_losses and not is_same_loss(mine, theirs)):
            return number
    return None


def _num_equal(whole: Sequence[Step], resumed: Sequence[Step], start: int) -> int:
    """Resumed steps with the samples of the whole run, from the first one on."""
    number = 0
    for mine, theirs in zip(whole[start:], resumed, strict=False):
        if mine.ids != theirs.ids:
            break
        number += 1
    return number


def _ids(steps: Sequence[Step]) -> list[SampleId]:
    return [one for step in steps for one in step.ids]


def _shares(
    seen: Sequence[SampleId], rest: Sequence[SampleId], resumed: Sequence[Step], *, is_whole_epoch: bool
) -> dict[str, Any]:
    starts = epoch_starts(resumed)
    end = starts[1] if len(starts) > 1 else len(resumed)
    got = _ids(resumed[:end])
    again = [one for one in got if one in set(seen)]
    is_complete = is_whole_epoch and (len(starts) > 1 or len(got) >= len(rest))
    missing = [one for one in rest if one not in set(got)] if is_complete else []
    return {
        "differs": "samples" if again or missing else "order",
        "num_repeated": len(again),
        "num_missing": len(missing),
        "sample_ids": tuple((again or missing)[:5]),
        "is_right_number": is_whole_epoch and len(got) == len(rest) and len(starts) > 1,
    }


def _order_of(whole: Sequence[Step], resumed: Sequence[Step]) -> int | None:
    """The epoch of the whole run that the resumed one began to repeat."""
    for number, start in enumerate(epoch_starts(whole)):
        length = min(FEWEST, len(resumed), len(whole) - start)
        if length and all(whole[start + one].ids == resumed[one].ids for one in range(length)):
            return number
    return None
