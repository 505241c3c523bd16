"""What a loader is, and what explains the numbers of its delivery before anybody calls them a fault."""

from __future__ import annotations

from typing import Any

from headrace.doctor.sameness.passport import Introduction
from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import attribute, is_instance, length
from headrace.doctor.subject.samplers import chain, rank_place
from headrace.engine.plan import Plan

__all__ = ["introduce"]

NUM_ASKED = 3
"""Rows that are asked for their names."""


def introduce(subject: Subject, num_workers: int | None) -> Introduction:
    """Returns what is known without loading anything."""
    loader = subject.loader
    is_keyed = loader is not None and any(base.__module__ == "headrace.engine.loader" for base in type(loader).__mro__)
    has_rows = not subject.is_iterable
    asked = range(min(NUM_ASKED, subject.num_samples or 0)) if has_rows else range(0)
    seed = attribute(loader, "seed") if is_keyed else None
    return Introduction(
        kind=subject.kind,
        num_workers=subject.num_workers if num_workers is None else num_workers,
        num_rows=subject.num_samples if has_rows else None,
        has_rows=has_rows,
        has_names=any(subject.sample_id(row) != row for row in asked),
        draws_by_key=is_keyed,
        seed=seed if isinstance(seed, int) else None,
        can_freeze=_can_freeze(subject, is_keyed=is_keyed),
        pins=bool(attribute(loader, "pin_memory")),
        notes=tuple(_notes(subject, loader)),
    )


def _can_freeze(subject: Subject, *, is_keyed: bool) -> bool:
    """True where each sample can be caught just before it is made: torch's loaders, and data sets with row numbers.

    The stages of a plan draw by key, whatever state generators are in.
    """
    if isinstance(subject.dataset, Plan):
        return False
    if is_keyed or subject.loader is None:
        return not subject.is_iterable
    return is_instance(subject.loader, "torch.utils.data", "DataLoader")


def _notes(subject: Subject, loader: Any) -> list[str]:
    found = []
    if len(subject.siblings) > 1:
        name = next(name for name, one in subject.siblings.items() if one is subject)
        found.append(f"is the loader {name}, the first of {len(subject.siblings)}")
    size, number = subject.batch_size, subject.num_samples
    if subject.drop_last:
        rest = "" if not size or not number or _draws_apart(loader) else f" of {number % size} samples"
        if not rest.startswith(" of 0 "):
            found.append(f"leaves out its incomplete last batch{rest} (drop_last=True)")
    samplers = [] if loader is None else list(chain(loader))
    replacing = (type(one).__name__ for one in samplers if attribute(one, "replacement") is True)
    found += [f"draws samples with replacement ({name})" for name in replacing]
    place = None if loader is None else rank_place(loader)
    if place is not None and place.world_size > 1:
        total, own = attribute(place.holder, "total_size"), number or length(subject.dataset)
        added = total - own if isinstance(total, int) and isinstance(own, int) else 0
        found.append(
            f"delivers the share of rank {place.rank} of {place.world_size}"
            + (f", padded with {added} repeated samples over all ranks" if added > 0 else "")
        )
    policy = attribute(attribute(loader, "_arguments"), "on_error")
    if policy is not None and policy != "raise":
        found.append(f"goes on after samples that fail (on_error={policy!r})")
    return found


def _draws_apart(loader: Any) -> bool:
    """True if the sampler delivers another number than the data set holds."""
    return any(attribute(one, "num_samples") is not None for one in ([] if loader is None else chain(loader)))
