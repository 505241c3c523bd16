"""One kept sample, the same bytes in memory and on disk: a head with a checksum, the text of its form, its block.

    head (64 bytes): magic and version, length of text, length of block, stamp of the content, checksum; then the
    text, filled up to a multiple of 64; then the block.

The checksum stands in for trust: an entry that was only half written, or that a disk changed, is no entry.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash
from numpy.lib.stride_tricks import as_strided

from headrace.engine.cache.packing import ALIGNMENT, Packed, unpack

__all__ = ["MISS", "View", "alike", "decode", "encode", "look", "runs"]

MISS = object()
"""Stands for a sample that is not kept, or not as it is now."""

_HEAD = struct.Struct("<4sIQ16sQ")
_STAMP, _CHECKSUM = slice(16, 32), slice(32, 40)  # where they lie in a head
_MAGIC = b"HRC\x01"  # the last byte is the version of the format
Bytes = npt.NDArray[np.uint8]


def encode(packed: Packed, stamp: bytes) -> Bytes:
    """Returns the bytes of one entry, a multiple of 64."""
    begin = _block_begin(len(packed.layout))
    entry = np.zeros(begin + _filled_up(packed.num_bytes), np.uint8)
    block = entry[begin : begin + packed.num_bytes]
    packed.write(block)
    entry[ALIGNMENT : ALIGNMENT + len(packed.layout)] = np.frombuffer(packed.layout, np.uint8)
    checksum = _checksum(stamp, packed.layout, block)
    _HEAD.pack_into(entry.data, 0, _MAGIC, len(packed.layout), packed.num_bytes, stamp, checksum)
    return entry


def decode(data: Bytes, stamp: bytes) -> Any:
    """Returns the sample of the entry with which `data` begins; MISS if it is another's, of older content, or damaged.

    Its arrays are views of `data`, which belongs to it from now on.
    """
    view = look(data, stamp)
    return unpack(view.layout, view.block) if view is not None and view.is_sound() else MISS


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """An entry in its place."""

    stamp: bytes
    layout: bytes
    block: Bytes
    checksum: int

    def is_sound(self) -> bool:
        """Returns True if every byte is as it was written."""
        return self.checksum == _checksum(self.stamp, self.layout, self.block)


def look(data: Bytes, stamp: bytes) -> View | None:
    """Returns the entry with which `data` begins, without copying its block; None if it has another stamp or no head."""
    if data.nbytes < ALIGNMENT:
        return None
    magic, layout_bytes, block_bytes, kept_stamp, checksum = _HEAD.unpack_from(data.data, 0)
    begin = _block_begin(layout_bytes)
    if magic != _MAGIC or kept_stamp != stamp or begin + _filled_up(block_bytes) > data.nbytes:
        return None
    layout = data[ALIGNMENT : ALIGNMENT + layout_bytes].tobytes()
    return View(stamp, layout, data[begin : begin + block_bytes], checksum)


def alike(data: Bytes, places: npt.NDArray[np.int64], stamps: Bytes) -> tuple[bytes, npt.NDArray[np.int64]] | None:
    """Returns the text of form that some sound entries have in common, and the place of each block; None: not one form.

    Args:
        data: Where the entries lie.
        places: (B,) where each begins.
        stamps: (B, 16) what their stamps must be; None, too, if one has another.
    """
    heads = runs(data, ALIGNMENT)[places]
    first = heads[0].copy()
    first[_STAMP] = first[_CHECKSUM] = 0
    is_stamped = (heads[:, _STAMP] == stamps).all()
    heads[:, _STAMP] = heads[:, _CHECKSUM] = 0
    if not is_stamped or (heads != first).any():
        return None
    _, layout_bytes, _, _, _ = _HEAD.unpack_from(first.data, 0)
    layouts = runs(data, layout_bytes)[places + ALIGNMENT]
    if (layouts != layouts[0]).any():
        return None
    return layouts[0].tobytes(), places + _block_begin(layout_bytes)


def runs(data: Bytes, num_bytes: int) -> Bytes:
    """Returns every run of so many bytes, as a view: number s begins at byte s."""
    return as_strided(data, (data.nbytes - num_bytes + 1, num_bytes), (1, 1), writeable=False)


def _block_begin(layout_bytes: int) -> int:
    return ALIGNMENT + _filled_up(layout_bytes)


def _filled_up(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def _checksum(stamp: bytes, layout: bytes, block: Bytes) -> int:
    digest = xxhash.xxh3_64(stamp)
    digest.update(layout)
    digest.update(block.data)
    return digest.intdigest()
