"""How much is in a batch: bytes, pixels, tokens. Looked at in some batches, and scaled up by their samples."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.contract.view import as_array, flatten
from headrace.doctor.timing.timed import Amounts

__all__ = ["BatchAmounts", "Tally", "look_at"]

CHANNELS = {1, 3, 4}
SMALLEST_IMAGE = 8
"""Pixels of an edge below which something with three numbers per place is hardly a picture."""
TOKEN_NAMES = ("input_ids", "token_ids", "tokens", "ids", "source_ids", "src_tokens")
"""Names that fields of tokens have by custom."""
MASK_NAMES = ("attention_mask", "mask", "padding_mask", "key_padding_mask", "src_key_padding_mask")
PADS_ARE_TRUE = ("padding_mask", "key_padding_mask", "src_key_padding_mask")
"""Masks of torch's own attention say where the padding is, not where it is not."""
MAX_LAST_VALUES = 8
"""Values at the ends of rows that are tried as padding."""
MOST_ELSEWHERE = 0.05
"""How often a padding value may stand among the tokens, as a part of the padding."""
MOST_PLACES = 1 << 18
"""Places of a field of tokens that are looked at in one batch."""
LEAST_PADDED = 0.001
"""Part of the places that padding must be to be of interest."""
FIRST, EVERY = 8, 64
"""The first 8 batches are looked at, and every 64th."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchAmounts:
    """Of one batch."""

    num_bytes: int
    num_pixels: int | None
    num_tokens: int | None
    """Without padding."""
    num_token_places: int | None
    """With padding."""


def look_at(batch: Any, num_samples: int) -> BatchAmounts:
    """Counts what is in a batch. Cost: microseconds per field, and a few passes over at most 262,144 places of a field of tokens."""
    leaves = list(flatten(batch))
    pixels = [found for _, value in leaves if (found := _pixels(value, num_samples))]
    tokens = _tokens(leaves, num_samples)
    return BatchAmounts(
        num_bytes=sum(_num_bytes(value) for _, value in leaves),
        num_pixels=sum(pixels) if pixels else None,
        num_tokens=None if tokens is None else tokens[0],
        num_token_places=None if tokens is None else tokens[1],
    )


class Tally:
    """Adds up the amounts of a run."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, BatchAmounts]] = []

    def wants(self, number: int) -> bool:
        """True if batch `number` is to be looked at."""
        return number < FIRST or number % EVERY == 0

    def add(self, batch: Any, num_samples: int) -> None:
        """Looks at one batch."""
        self._seen.append((num_samples, look_at(batch, num_samples)))

    def total(self, num_samples: int) -> Amounts:
        """Of all samples, those of batches that were not looked at taken to be like the others."""
        looked = sum(num for num, _ in self._seen)
        factor = num_samples / looked if looked else 0.0
        tokens, places = self._sum("num_tokens"), self._sum("num_token_places")
        pixels = self._sum("num_pixels")
        return Amounts(
            num_samples=num_samples,
            num_bytes=round(factor * sum(one.num_bytes for _, one in self._seen)),
            num_pixels=None if pixels is None else round(factor * pixels),
            num_tokens=None if tokens is None else round(factor * tokens),
            padding_share=1 - tokens / places if tokens is not None and places else None,
        )

    def _sum(self, name: str) -> int | None:
        values = [value for _, one in self._seen if (value := getattr(one, name)) is not None]
        return sum(values) if values else None


def _num_bytes(value: Any) -> int:
    found = getattr(value, "nbytes", 0)
    return found if isinstance(found, int) else 0


def _pixels(value: Any, num_samples: int) -> int | None:
    """Height x width of a picture, a batch of pictures, or a batch of films; None: it is none of them."""
    size = getattr(value, "size", None)
    if isinstance(getattr(value, "mode", None), str) and isinstance(size, tuple) and len(size) == 2:  # Pillow's
        return int(size[0]) * int(size[1])
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", ""))
    if shape is None or not ("uint8" in dtype or "float" in dtype):
        return None
    sizes = tuple(int(one) for one in shape)
    counts_samples = sizes[:1] == (num_samples,)
    # Three axes of which the first counts samples are points, sound, states: anything but pictures.
    is_one = len(sizes) == 3 and not (counts_samples and num_samples > 1)
    if not (is_one or (len(sizes) in {4, 5} and counts_samples)):
        return None
    *outer, first, second, third = sizes
    edges = (second, third) if first in CHANNELS else (first, second) if third in CHANNELS else None
    if edges is None or min(edges) < SMALLEST_IMAGE:
        return None
    return int(np.prod(outer, dtype=np.int64)) * edges[0] * edges[1]


def _tokens(leaves: list[tuple[str, Any]], num_samples: int) -> tuple[int, int] | None:
    """(tokens, places for tokens) of the first field of tokens; None: there is none."""
    fields = {name: array for name, value in leaves if (array := _two_axes(value, num_samples)) is not None}
    masks = {name: array for name, array in fields.items() if _is_mask(name, array)}
    ids = {name: array for name, array in fields.items() if name not in masks and array.dtype.kind in "iu"}
    named = [name for name in ids if _last(name) in TOKEN_NAMES]
    for name in [*named, *(name for name in ids if name not in named)]:
        array = ids[name]
        mask_name = next((other for other, mask in masks.items() if mask.shape == array.shape), None)
        if mask_name is not None:
            marked = int(np.count_nonzero(masks[mask_name]))
            return (array.size - marked if _last(mask_name) in PADS_ARE_TRUE else marked), array.size
        padding = _padding(array)
        if padding or name in named:
            return array.size - padding, array.size
    return None


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _two_axes(value: Any, num_samples: int) -> NDArray[Any] | None:
    """A field (B, T) of whole numbers or truths on the host."""
    shape = getattr(value, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != num_samples or shape[1] < 2:
        return None
    if not str(getattr(value, "device", "cpu")).startswith("cpu"):
        return None
    return None if "float" in str(getattr(value, "dtype", "")) else as_array(value)


def _is_mask(name: str, array: NDArray[Any]) -> bool:
    if array.dtype.kind == "b":
        return True
    return _last(name) in MASK_NAMES and not bool(np.any((array != 0) & (array != 1)))


def _padding(array: NDArray[Any]) -> int:
    """Places at one end of the rows that are filled up with one value; 0: the rows are all alike in length.

    It is padding if runs of that value are of several lengths, and it hardly stands elsewhere. Of a large field only the
    first rows are looked at, and a part of it too small to matter to anybody's tokens is not looked for: this runs beside
    what is timed.
    """
    part = array[: max(2, MOST_PLACES // array.shape[1])]
    most = 0
    for rows in (part, part[:, ::-1]):
        last = rows[:, -1]
        is_other = rows[:, ::-1] != last[:, None]
        ends = np.where(is_other.any(axis=1), is_other.argmax(axis=1), rows.shape[1])
        for value in np.unique(last)[:MAX_LAST_VALUES]:
            runs = np.where(last == value, ends, 0)
            num = int(runs.sum())
            if num <= max(1, LEAST_PADDED * rows.size, most) or np.unique(runs).size == 1:
                continue
            elsewhere = int(np.count_nonzero(rows == value)) - num
            if elsewhere <= num * MOST_ELSEWHERE:
                most = num
    return round(most * array.size / part.size) if most else 0
