"""Where large batches are made: in memory that was a batch before, or where they will be sent from.

    batch_memory ──▶ array over a loan ──torch.from_numpy──▶ the batch ──last view gone──▶ the block is free again

Fresh pages cost half as much as a copy. Arrays and tensors over a block keep its loan alive, and so do their slices,
reshapes and conversions; its finalizer gives the block back. A forked child has copies of its own of all of this.

In a worker process whoever sends results away lends memory (`lent_by`), and what is made there need not be copied again.
It is used for another result afterwards, so only what leaves the process may be made in it: whoever makes the result
says so (`for_the_result`), and not the code of a data set that happens to run in between.
"""

from __future__ import annotations

import collections
import contextlib
import math
import mmap
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MIN_BYTES", "Lend", "batch_memory", "for_the_result", "is_sent_away", "lent_by"]

MIN_BYTES = 1 << 20
"""Smaller arrays come from the allocator, which has warm memory for these."""

KEPT_BLOCKS, KEPT_BYTES = 4, 64 << 20
"""Free blocks that wait for the next batch: one while the loop still holds the batch before, some for threads."""

Lend = Callable[[int], "npt.NDArray[np.uint8] | None"]
"""Takes a number of bytes; returns so many, or None if there is no place for them."""


class _Here(threading.local):
    """What holds in this thread."""

    lend: Lend | None = None
    is_for_result = False


_here = _Here()

_free: collections.deque[npt.NDArray[np.uint8]] = collections.deque()
"""Its methods are atomic, which is all that keeps threads apart: a finalizer may run anywhere and must not wait."""


class _Loan:
    """What numpy holds on to instead of the block: no array, so that no view can point past it to the block."""

    def __init__(self, block: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        data = block.__array_interface__["data"]
        self.__array_interface__ = {"version": 3, "data": data, "shape": shape, "typestr": dtype.str}


def batch_memory(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Returns an array of any content, to be filled; large ones over memory that was a batch before.

    Args:
        shape: (B, ...).
        dtype: Of numbers, native.
    """
    kind = np.dtype(dtype)
    num_bytes = math.prod(shape) * kind.itemsize
    if _here.is_for_result and _here.lend is not None:
        lent = _here.lend(num_bytes)
        return np.empty(shape, kind) if lent is None else lent.view(kind).reshape(shape)
    if num_bytes < MIN_BYTES:
        return np.empty(shape, kind)
    block = _fitting(num_bytes)
    loan = _Loan(block, shape, kind)
    weakref.finalize(loan, _give_back, block).atexit = False
    return np.asarray(loan)


def _fitting(num_bytes: int) -> npt.NDArray[np.uint8]:
    """Returns a block that is large enough, and no more than twice as large."""
    for _ in range(len(_free)):
        try:
            block = _free.pop()  # the last one is the warmest
        except IndexError:  # another thread took it
            break
        if num_bytes <= block.nbytes <= 2 * num_bytes:
            return block
        _free.appendleft(block)
    return _fresh(num_bytes)


def _fresh(num_bytes: int) -> npt.NDArray[np.uint8]:
    """Returns memory that begins with a page, and is seen through few large pages where the system has them."""
    block = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(AttributeError, OSError):
        block.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(block, np.uint8)


def _give_back(block: npt.NDArray[np.uint8]) -> None:
    _free.append(block)
    while len(_free) > KEPT_BLOCKS or sum(kept.nbytes for kept in list(_free)) > KEPT_BYTES:
        with contextlib.suppress(IndexError):
            _free.popleft()  # the oldest: sizes change, and what is not asked for goes
            continue
        break


def is_sent_away() -> bool:
    """True if what this thread makes leaves the process as a pickle."""
    return _here.lend is not None


@contextlib.contextmanager
def lent_by(lend: Lend) -> Iterator[None]:
    """Offers memory to what this thread makes of the result of one order. Threads and calls do not nest."""
    _here.lend = lend
    try:
        yield
    finally:
        _here.lend = None


@contextlib.contextmanager
def for_the_result() -> Iterator[None]:
    """What this thread makes within is part of the result, and nobody in this process keeps it."""
    _here.is_for_result = True
    try:
        yield
    finally:
        _here.is_for_result = False
