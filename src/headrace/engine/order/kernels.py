"""`kernels.c`, where it was built: the network of `permutation.py` and the hashes of `row_hash.py`, several times faster.

Those files define the results and can do without, so that there is no library is no failure, and nobody is told.

The library is a `PyDLL`: its calls keep the interpreter lock, and none takes more than 0.2 ms, because rows are passed in
blocks. Giving the lock away for so short a time gains nothing, and costs up to 5 ms when another thread takes it and does
not let go before its turn is over. Between two blocks the interpreter may let others have theirs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from headrace import native

__all__ = ["SOURCE", "AddHashes", "hashing", "run_network"]

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

AddHashes = Callable[[int, int], None]
"""Takes where the hashes of the epoch start, and how many rows to hash."""

SOURCE: Final = "engine/order/kernels.c"

BLOCK: Final = 2**14
"""Rows of one call: 60 microseconds with vector instructions of 512 bits, 0.15 ms with those of 128."""

enabled = True
"""Tests set it to False; numpy then does everything."""


def run_network(network: Words, values: Integers, results: Integers, *, undo: bool) -> bool:
    """Writes to `results` what the network makes of `values`; returns False if there is no library, and does nothing.

    Args:
        network: (19,) num_positions, height, right_bits, and multiplier and offset of each round.
        values: (B,) in [0, num_positions), contiguous.
        results: (B,) contiguous; may be `values`.
        undo: Backwards.
    """
    library = _library()
    if library is None:
        return False
    address = network.ctypes.data
    for low in range(0, len(values), BLOCK):
        source, target = values[low : low + BLOCK], results[low : low + BLOCK]
        library.headrace_run_network(address, undo, source.ctypes.data, target.ctypes.data, len(source))
    return True


def hashing(positions: Integers, indices: Integers, sums: Words) -> AddHashes | None:
    """Returns what hashes the rows that these arrays hold at the time, see `row_hash`; None if there is no library.

    Their addresses are asked for once: that takes longer than the hashes of a small batch.

    Args:
        positions: (B,) contiguous; B no more than BLOCK.
        indices: (B,) contiguous.
        sums: (4,) what is added to.
    """
    library = _library()
    if library is None:
        return None
    add, longest = library.headrace_add_hashes, len(positions)
    # These pointers keep their arrays alive.
    first, second, total = (array.ctypes.data_as(ctypes.c_void_p) for array in (positions, indices, sums))

    def add_first(start: int, num: int) -> None:
        if num > longest:
            raise IndexError(f"{num} rows of an array of {longest}")
        add(start, first, second, num, total)

    return add_first


def _library() -> ctypes.PyDLL | None:
    return _loaded() if enabled else None


@functools.cache
def _loaded() -> ctypes.PyDLL | None:
    library = native.load(SOURCE, ctypes.PyDLL)
    if library is not None:
        address, size = ctypes.c_void_p, ctypes.c_size_t
        library.headrace_run_network.argtypes = [address, ctypes.c_int, address, address, size]
        library.headrace_add_hashes.argtypes = [ctypes.c_uint64, address, address, size, address]
        library.headrace_run_network.restype = library.headrace_add_hashes.restype = None
    return library
