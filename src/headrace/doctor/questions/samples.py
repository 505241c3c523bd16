"""Questions that several rules ask the same evidence. Pure; rules never import each other, so the questions live here.

The order of guilt: a grey image among colour images changes the number of channels, which changes the shape, which
breaks collate. Each question below lets one rule see what another one already explains, so that one cause is
reported once, at its root.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from headrace.contract.view import ValueView
from headrace.doctor.evidence import CollateTrial, DecodedImage, LoaderFacts, SampleRead, SampleReads
from headrace.errors import SampleId

__all__ = [
    "JOINABLE_KINDS",
    "ChannelSplit",
    "blame",
    "channel_splits",
    "ended_early",
    "grouped",
    "is_bare",
    "joins_samples",
]

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

JOINABLE_KINDS = frozenset({"tensor", "array", "number", "boolean", "string", "bytes", "sequence", "dict", "tuple"})
"""Kinds of leaf that torch's default collate accepts; `dict` and `tuple` are empty containers."""

CHANNELS = {
    **dict.fromkeys(("1", "L", "P", "I", "F", "I;16", "I;16B", "I;16L"), 1),
    **dict.fromkeys(("LA", "PA", "La"), 2),
    **dict.fromkeys(("RGB", "YCbCr", "LAB", "HSV"), 3),
    **dict.fromkeys(("RGBA", "RGBX", "RGBa", "CMYK"), 4),
}
"""Channels that an image of each of Pillow's modes has once it is an array. Source: Pillow, "Concepts: Modes"."""


def grouped(pairs: Iterable[tuple[KeyT, ValueT]]) -> dict[KeyT, list[ValueT]]:
    """Returns the values of each key, keys and values in the order of their first appearance."""
    groups: dict[KeyT, list[ValueT]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def blame(trial: CollateTrial, ids: Collection[SampleId]) -> float:
    """Returns how surely a difference of these samples from the others makes collate fail; 0 = it does not.

    Torch's default rules refuse every such difference, whether or not these samples were among those joined. A
    collate function of the user's own is only blamed for what it was seen to do.
    """
    joined, concerned = set(trial.sample_ids), set(ids)
    if "default_convert" in trial.collate:  # hands samples over one by one
        return 0.0
    if trial.succeeded:
        is_proven_harmless = bool(concerned & joined and joined - concerned)
        return 1.0 if trial.is_default and not is_proven_harmless else 0.0
    if trial.is_default:
        return 1.0
    if ended_early(trial):
        return 0.0
    if not trial.odd_ids:
        return 0.7 if concerned & joined else 0.0
    # Of the samples concerned, only the one that the others were held against may fit.
    tried, odd = concerned & joined, set(trial.odd_ids)
    return 0.9 if tried & odd and len(tried - odd) <= 1 else 0.0


def ended_early(trial: CollateTrial) -> bool:
    """True if collate did not fail but hung, or took the interpreter down: no difference between samples does that."""
    return not trial.succeeded and (trial.error_type or "").startswith(("stuck", "SIG", "signal ", "exit status "))


def joins_samples(facts: LoaderFacts) -> bool:
    """False if the loader hands over samples one by one, so that nothing has to fit beside anything else."""
    is_unbatched = facts.batch_size is None and "default_convert" in (facts.collate or "")
    return facts.batch_size != 1 and not is_unbatched


def is_bare(facts: LoaderFacts) -> bool:
    """True for a data set without a loader: how its samples will be joined is not known."""
    return facts.collate is None and facts.batch_size is None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSplit:
    """One field whose number of channels follows the mode of the image file."""

    field: str
    modes: Mapping[str, tuple[SampleRead, ...]]
    """Samples by mode of the file, the most common mode first."""
    odd: tuple[SampleRead, ...]
    """Samples whose number of channels is not the most common one, in data set order."""


def channel_splits(seen: SampleReads) -> tuple[ChannelSplit, ...]:
    """Returns the fields whose channels differ between samples just as the modes of the image files do."""
    by_field = grouped((view.field, (read, view)) for read in seen.ok for view in read.fields)
    splits = (_channel_split(field, views) for field, views in by_field.items())
    return tuple(split for split in splits if split is not None)


def _channel_split(field: str, views: list[tuple[SampleRead, ValueView]]) -> ChannelSplit | None:
    for slot in range(max(len(read.images) for read, _ in views)):
        cases = [(read, view, read.images[slot]) for read, view in views if len(read.images) > slot]
        if all(_has_channels_of(image, view) for _, view, image in cases):
            sizes = grouped((CHANNELS[image.mode], read) for read, _, image in cases)
            if len(sizes) > 1:
                usual = {read.index for read in max(sizes.values(), key=len)}
                modes = grouped((image.mode, read) for read, _, image in cases)
                ranked = sorted(modes.items(), key=lambda item: -len(item[1]))
                return ChannelSplit(
                    field=field,
                    modes={mode: tuple(reads) for mode, reads in ranked},
                    odd=tuple(read for read, _, _ in cases if read.index not in usual),
                )
    return None


def _has_channels_of(image: DecodedImage, view: ValueView) -> bool:
    """True if the array could be this image, unconverted: [H, W], [C, H, W] or [H, W, C] with the mode's C."""
    channels, shape = CHANNELS.get(image.mode), view.shape or ()
    if channels is None:
        return False
    return (len(shape) == 2 and channels == 1) or (len(shape) == 3 and channels in {shape[0], shape[-1]})
