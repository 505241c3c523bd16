"""Do workers draw the same random numbers? Compares the states of one generator at the same places. Pure.

Generators are compared by place (the k-th sample of each worker) while the samples differ: epoch 2 takes them in the
opposite order. A copied generator has equal states at equal places. One that is seeded for each sample (by its index,
say) has equal states for equal samples instead, which is as it should be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from headrace.doctor.evidence.randomness import GeneratorDraws
from headrace.doctor.walks.generators import GLOBALS
from headrace.doctor.walks.journal import Event

__all__ = ["Followed", "compare_draws", "follow"]

FEWEST = 2
"""Equal places that make a stream: one could be the first draw after a seed that all share by intention."""


@dataclasses.dataclass(frozen=True, slots=True)
class Followed:
    """One generator after one sample."""

    sample: str
    """What was prepared: index, or digest of the content where there are no indices."""
    state: str
    origin: str
    has_moved: bool


def follow(events: Iterable[Event]) -> dict[str, list[Followed]]:
    """Returns, for each generator in one worker's journal, what it was after each sample and batch, in order."""
    found: dict[str, list[Followed]] = {}
    last: dict[str, str] = {}
    batch: list[str] = []
    for event in events:
        if event["at"] == "end":
            sample = str(event["index"]) if event["index"] is not None else repr(event["fields"])
            batch.append(sample)
        elif event["at"] == "batch":
            sample, batch = " ".join(batch), []
        else:
            sample = ""
        for path, (state, origin, _) in event.get("states", {}).items():
            if event["at"] != "start":
                # A generator that was made on the way has been made, and drawn from, for this sample.
                has_moved = last.get(path) != state
                if has_moved or event["at"] == "end":  # most collate functions draw nothing, and need not be followed
                    found.setdefault(path, []).append(Followed(sample, state, origin, has_moved))
            last[path] = state
    return found


def kinds(events: Iterable[Event]) -> dict[str, str]:
    """Path -> kind of each generator in a journal."""
    return {path: entry[2] for event in events for path, entry in event.get("states", {}).items()}


def is_same_stream(one: Sequence[Followed], other: Sequence[Followed], *, by_place: bool = True) -> bool | None:
    """True if both draw the same numbers at the same places for different samples; None: too few draws to say."""
    pairs = [
        (a, b)
        for a, b in zip(one, other, strict=False)
        if a.has_moved and b.has_moved and (not by_place or a.sample != b.sample)
    ]
    if len(pairs) < FEWEST:
        return None
    equal = {a.state for a, b in pairs if a.state == b.state} | {
        # Draws may differ in number from sample to sample; the origin is the same as long as nobody seeds anew.
        (a.origin, place)
        for place, (a, b) in enumerate(pairs)
        if a.origin == b.origin
    }
    return len(equal) >= FEWEST and 2 * len(equal) >= len(pairs) and not _is_reset(one)


def _is_reset(followed: Sequence[Followed]) -> bool:
    """True if every sample leaves the generator in one and the same state: it is seeded with a constant each time."""
    states = {one.state for one in followed}
    return len(followed) > 1 and len(states) == 1


def compare_draws(epochs: Sequence[Sequence[Sequence[Event]]], *, is_iterable: bool) -> tuple[GeneratorDraws, ...]:
    """Compares every generator over the workers of epoch 1, and over two epochs.

    Args:
        epochs: Journals by epoch and worker; one epoch alone says nothing about two.
        is_iterable: True for a stream: it comes in the same order again, so places cannot be told from samples.
    """
    followed = [[follow(journal) for journal in workers] for workers in epochs]
    names = {path: kind for workers in epochs for journal in workers for path, kind in kinds(journal).items()}
    return tuple(_compare(path, kind, followed, is_iterable) for path, kind in names.items())


def _compare(
    path: str, kind: str, followed: Sequence[Sequence[dict[str, list[Followed]]]], is_iterable: bool
) -> GeneratorDraws:
    first = [one.get(path, []) for one in followed[0]]
    over_workers = [is_same_stream(first[0], other) for other in first[1:]]
    over_epochs = [
        is_same_stream(one, again.get(path, []), by_place=not is_iterable)
        for one, again in zip(first, followed[1] if len(followed) > 1 else [], strict=False)
    ]
    return GeneratorDraws(
        path=path,
        kind=kind,
        is_held=path not in GLOBALS,
        num_moved=sum(one.has_moved for worker in first for one in worker),
        num_followed=sum(map(len, first)),
        same_over_workers=_any(over_workers),
        same_over_epochs=_any(over_epochs),
    )


def _any(answers: Sequence[bool | None]) -> bool | None:
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None
