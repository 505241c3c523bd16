"""What the journals of a walk say: which workers draw alike, and which samples were begun and not finished."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Callable, Sequence

from headrace.doctor.sameness.passport import SharedDraws
from headrace.doctor.walks.draws import Followed, follow, is_same_stream
from headrace.doctor.walks.journal import Event, read_journal
from headrace.errors import SampleId

__all__ = ["in_hands", "repeated_draws", "shared_draws"]


def shared_draws(journals: Sequence[Sequence[Event]], sample_id: Callable[[int], SampleId]) -> tuple[SharedDraws, ...]:
    """Returns, for each generator that two workers read alike, the first two samples that show it.

    Args:
        journals: By worker; of the first epoch, where workers are started anew for each.
        sample_id: The id of a row.
    """
    followed = [follow(_lives(events)[0]) for events in journals]
    found: dict[str, SharedDraws] = {}
    for one, other in itertools.combinations(followed, 2):
        for path in one.keys() & other.keys():
            if path not in found and is_same_stream(one[path], other[path]):
                found[path] = SharedDraws(generator=path, samples=_first(one[path], other[path], sample_id))
    return tuple(found[path] for path in sorted(found))


def in_hands(folder: str) -> tuple[str | int, ...]:
    """Returns the indices that were being prepared when a walk broke off, by the last line of each journal."""
    found: list[str | int] = []
    for path in sorted(pathlib.Path(folder).glob("*.journal")):
        last = read_journal(path)[-1:]
        if last and last[0]["at"] == "begin" and last[0]["stage"] == "sample":
            found += last[0]["indices"]
    return tuple(found)


def repeated_draws(
    journals: Sequence[Sequence[Event]], sample_id: Callable[[int], SampleId]
) -> tuple[SharedDraws, ...]:
    """Returns, for each generator that a worker reads in epoch 1 as in epoch 0, the first samples that show it.

    Only samples that differ at equal places count: of the same sample again, its fields tell whether it is the same.
    """
    found: dict[str, SharedDraws] = {}
    for events in journals:
        one, other = (follow(life) for life in (*_lives(events)[:2], [])[:2])
        for path in one.keys() & other.keys():
            if path not in found and is_same_stream(one[path], other[path]):
                found[path] = SharedDraws(generator=path, samples=_first(one[path], other[path], sample_id))
    return tuple(found[path] for path in sorted(found))


def _lives(events: Sequence[Event]) -> list[Sequence[Event]]:
    """The workers that wrote this journal one after another: each epoch's new one goes on in the same file."""
    births = [place for place, event in enumerate(events) if event["at"] == "born"] or [0]
    return [events[start:end] for start, end in zip(births, [*births[1:], len(events)], strict=True)]


def _first(
    one: Sequence[Followed], other: Sequence[Followed], sample_id: Callable[[int], SampleId]
) -> tuple[SampleId, SampleId]:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a.has_moved and b.has_moved and a.sample != b.sample]
    a, b = next(((a, b) for a, b in pairs if a.state == b.state), pairs[0])
    return _named(a.sample, sample_id), _named(b.sample, sample_id)


def _named(text: str, sample_id: Callable[[int], SampleId]) -> SampleId:
    return sample_id(int(text)) if text.isdigit() else text
