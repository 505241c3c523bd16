"""The memory in which global generators keep their state: equal memory is equal state, seen at once.

Asking for a state costs 9 us (random) and 60 us (numpy), because each of 624 words becomes an object. Whether anything
was drawn is asked once per batch, and the answer is nearly always no. So the bytes are copied as they lie: 0.5 us each.

    random   ─▶ the C part of the generator object (words, place), and `gauss_next`, an attribute of the Python part
    numpy    ─▶ the words and the place, where the bit generator says that they lie; and the C part of the RandomState
                (the second of two normal numbers, and whether there is one)

That is everything `getstate` and `get_state` read, so no draw, seed or set state can escape. The other way round proves
nothing: bytes that differ may mean the same state, and then the states themselves are compared, as they are where the
memory cannot be seen: another interpreter, another bit generator, a layout that the self-test does not recognise.
"""

from __future__ import annotations

import _random
import ctypes
import functools
import random
import sys
from typing import Any

import numpy as np

__all__ = ["of_numpy", "of_random"]

_HEAD_BYTES = object.__basicsize__  # what every object begins with: reference count and type
_MT19937_BYTES = 624 * 4 + 4  # the words and the place among them


def of_random() -> tuple[bytes, Any] | None:
    """Returns the memory of the generator behind `random.random`; None if it cannot be seen."""
    generator = getattr(random.getstate, "__self__", None)
    return _of_python(generator) if type(generator) is random.Random and _is_seen() else None


def of_numpy() -> tuple[bytes, bytes] | None:
    """Returns the memory of the generator behind `numpy.random.random`; None if it cannot be seen."""
    generator = getattr(np.random.get_state, "__self__", None)
    if type(generator) is not np.random.RandomState or not _is_seen():
        return None
    # Asked each time: a program may put another bit generator in.
    return _of_random_state(generator, _bit_generator())


_bit_generator: Any = getattr(np.random, "get_bit_generator", None)  # since numpy 1.24


def _of_python(generator: random.Random) -> tuple[bytes, Any]:
    return _body(generator, _random.Random).raw, generator.gauss_next  # type: ignore[attr-defined] # not in typeshed


def _of_random_state(generator: Any, bits: Any) -> tuple[bytes, bytes] | None:
    if type(bits) is not np.random.MT19937:
        return None
    return _words(bits).raw, _body(generator, np.random.RandomState).raw


# Kept per object, which keeps the object alive: a window must not outlive what it shows. One program has one or two.
@functools.lru_cache(maxsize=4)
def _words(bits: Any) -> ctypes.Array[ctypes.c_char]:
    return (ctypes.c_char * _MT19937_BYTES).from_address(bits.ctypes.state_address)


@functools.lru_cache(maxsize=4)
def _body(value: object, kind: type) -> ctypes.Array[ctypes.c_char]:
    """The bytes of an object as far as `kind`, its type or a base of it, lays them out, without the head."""
    return (ctypes.c_char * (kind.__basicsize__ - _HEAD_BYTES)).from_address(id(value) + _HEAD_BYTES)


@functools.cache
def _is_seen() -> bool:
    """Tries on generators of its own whether every kind of draw shows in the memory, and nothing else does."""
    if sys.implementation.name != "cpython" or _bit_generator is None:
        return False
    python, bits = random.Random(0), np.random.MT19937(0)
    numpy = np.random.RandomState(bits)
    python_seen = [_of_python(python)]
    for draw in (python.random, lambda: python.gauss(0, 1), lambda: python.gauss(0, 1), lambda: python.seed(0)):
        draw()
        python_seen.append(_of_python(python))
    numpy_seen = [_of_random_state(numpy, bits)]
    for draw in (numpy.random_sample, numpy.standard_normal, numpy.standard_normal):
        draw()
        numpy_seen.append(_of_random_state(numpy, bits))
    moves = len(set(python_seen)) == len(python_seen) - 1 and python_seen[0] == python_seen[-1]
    stands = _of_python(python) == python_seen[-1] and _of_random_state(numpy, bits) == numpy_seen[-1]
    return moves and stands and len(set(numpy_seen)) == len(numpy_seen)
