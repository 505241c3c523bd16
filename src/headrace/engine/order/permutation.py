"""A keyed permutation of [0, N): the order of an epoch as a function, not as a list.

    position ──forward──▶ index          index ──inverse──▶ position

Every place of the order costs the same to reach, so a run can begin anywhere, and nobody holds the whole of it. Two
regimes, because small domains can afford exactly uniform permutations and large ones must not take memory:

* N <= 2**16: a table, sorted by keyed hashes of the indices (at most 128 KiB, and as much again for the inverse).
* larger N: a generalised Feistel network with cycle walking (Black and Rogaway 2002, "Ciphers with arbitrary finite
  domains"), in a few bytes. It is made for statistical quality and speed; it is no protection against an adversary.

The output is frozen for ever under the name `keyed-1`, because saved states rely on it; a golden test holds it. A better
algorithm gets a new name.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from headrace.engine.order import kernels
from headrace.engine.order.mixing import GOLDEN, mix64
from headrace.errors import ConfigurationError
from headrace.keys import derive_key

__all__ = ["MAX_POSITIONS", "Permutation"]

Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

MAX_POSITIONS: Final = 2**48
"""Largest N: each half of a position then has at most 24 bits, which leaves 8 to spare in a 32-bit word."""

TABLE_POSITIONS: Final = 2**16
"""Largest N that is kept as a table: an entry then fits 16 bits, and the table fits the second-level cache."""

ROUNDS: Final = 8
"""Rounds of the network, four for each half. At N = 2**16 + 1, where the halves are smallest, 400 keys and 13 statistics
tell 5 rounds from random permutations and do not tell 6 (tests/laws/test_permutation.py holds the shorter form)."""

BLOCK: Final = 2**14
"""Positions enciphered at once: the buffers of a block (0.6 MiB) stay in the second-level cache. A block of
half the size takes 15 % longer."""


class Permutation:
    """A bijection on [0, num_positions) chosen by a key.

    Args:
        num_positions: N, from 1 to 2**48.
        key: From `headrace.keys.derive_key`. Different keys give unrelated permutations, and so do different N.

    Raises:
        ConfigurationError: N is out of range.

    Threads: may be used from several at once.
    Cost: 0.03 ms to make, or 1 ms for the largest table. Then, per position (2.3 GHz Xeon with AVX-512, numpy 2.4): 3 ns by
    table; by network 4 ns with the library of `kernels.c`, and 17 ns without, or 20 to 50 while other processes load the
    cores. A call by network costs 0.01 ms, or 0.05 ms without the library, however short, so ask for many at once. To
    measure:

        python -m timeit -s "import numpy as np; from headrace.engine.order.permutation import Permutation as P" -s
        "order, positions = P(10**9, key=1), np.arange(65536)" "order.forward(positions)"

    >>> order = Permutation(10, key=7)
    >>> sorted(order.forward(range(10)).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> order.inverse(order.forward([3, 4])).tolist()
    [3, 4]
    """

    def __init__(self, num_positions: int, key: int) -> None:
        if not 1 <= num_positions <= MAX_POSITIONS:
            raise ConfigurationError(
                f"an order of {num_positions:,} positions cannot be made: 1 to {MAX_POSITIONS:,} can",
            )
        self.num_positions = num_positions
        regime = _Table if num_positions <= TABLE_POSITIONS else _Network
        self._bijection: _Bijection = regime(num_positions, key)

    def forward(self, positions: npt.ArrayLike) -> Indices:
        """Returns the index at each position; same shape, int64.

        Raises:
            IndexError: A position is outside [0, num_positions).
        """
        return self._bijection.forward(self._within(positions, "position"))

    def inverse(self, indices: npt.ArrayLike) -> Indices:
        """Returns the position of each index; same shape, int64.

        Raises:
            IndexError: An index is outside [0, num_positions).
        """
        return self._bijection.inverse(self._within(indices, "index"))

    def _within(self, values: npt.ArrayLike, name: str) -> Indices:
        array = np.ascontiguousarray(np.asarray(values).astype(np.int64, casting="same_kind", copy=False))
        # Read as unsigned, a negative number is a huge one: one pass checks both ends.
        if array.size and int(array.view(np.uint64).max()) >= self.num_positions:
            worst = min(int(array.min()), 0) or int(array.max())
            raise IndexError(f"{name} {worst:,} is outside [0, {self.num_positions:,})")
        return array


class _Bijection(Protocol):
    """What both regimes do, with values that the caller has checked."""

    def forward(self, positions: Indices) -> Indices: ...

    def inverse(self, indices: Indices) -> Indices: ...


class _Table:
    """The order written out. Every permutation is equally likely as far as the 48-bit hashes are uniform."""

    def __init__(self, num_positions: int, key: int) -> None:
        first, second = divmod(derive_key("keyed-1 table", key, num_positions), 2**64)
        hashes = np.arange(num_positions, dtype=np.uint64)
        hashes *= GOLDEN
        hashes += np.uint64(first)
        mix64(hashes)
        hashes ^= np.uint64(second)
        mix64(hashes)
        # The index in the 16 low bits makes all values differ, so that every way of sorting gives this one result.
        hashes &= np.uint64(2**64 - 2**16)
        hashes |= np.arange(num_positions, dtype=np.uint64)
        hashes.sort()
        self._index_at = hashes.astype(np.uint16)
        self._position_of: npt.NDArray[np.uint16] | None = None

    def forward(self, positions: Indices) -> Indices:
        return self._index_at[positions].astype(np.int64)

    def inverse(self, indices: Indices) -> Indices:
        if self._position_of is None:
            position_of = np.empty_like(self._index_at)
            position_of[self._index_at] = np.arange(len(position_of), dtype=np.uint16)
            self._position_of = position_of  # two threads may both come here: they store the same
        return self._position_of[indices].astype(np.int64)


class _Network:
    """The order computed. A position is left * 2**k + right, with left in [0, height) and right in [0, 2**k).

    Each half in turn is moved, modulo its own size, by a keyed function of the other, which a subtraction undoes. Black
    and Rogaway leave the two sizes open; a power of two for the right half turns most divisions into shifts and masks
    (two equal halves take a quarter longer). The domain 2**k * height exceeds N by less than 2**k, at most one in 256; a
    value that falls there is enciphered again until it lands below N (cycle walking), which keeps the bijection.
    """

    def __init__(self, num_positions: int, key: int) -> None:
        self._num_positions = num_positions
        self._right_bits = (num_positions - 1).bit_length() // 2
        self._height = -(-num_positions >> self._right_bits)
        words = [derive_key("keyed-1 round", key, num_positions, i) for i in range(ROUNDS)]
        self._round_keys = [(np.uint32(word % 2**32 | 1), np.uint32((word >> 32) % 2**32)) for word in words]
        numbers = num_positions, self._height, self._right_bits, *(part for key in self._round_keys for part in key)
        self._for_kernel = np.array(numbers, dtype=np.uint64)

    def forward(self, positions: Indices) -> Indices:
        return self._walk(positions, undo=False)

    def inverse(self, indices: Indices) -> Indices:
        return self._walk(indices, undo=True)

    def _walk(self, values: Indices, *, undo: bool) -> Indices:
        flat = values.reshape(-1)
        results = np.empty_like(flat)
        if not kernels.run_network(self._for_kernel, flat, results, undo=undo):
            self._walk_plainly(flat, results, undo=undo)
        return results.reshape(values.shape)

    def _walk_plainly(self, flat: Indices, results: Indices, *, undo: bool) -> None:
        """Enciphers (or deciphers) block by block, and then again whatever landed outside [0, N).

        This is the definition of what `kernels.c` does.
        """
        for start in range(0, len(flat), BLOCK):
            self._encipher(flat[start : start + BLOCK], results[start : start + BLOCK], undo=undo)
        strays = np.flatnonzero(results >= self._num_positions)
        while strays.size:
            again = results[strays]
            self._encipher(again, again, undo=undo)
            results[strays] = again
            strays = strays[again >= self._num_positions]

    def _encipher(self, values: Indices, results: Indices, *, undo: bool) -> None:
        """Runs all rounds over one block, forwards or backwards; `results` may be `values`."""
        step, back = (np.subtract, np.add) if undo else (np.add, np.subtract)
        height, mask = np.uint32(self._height), np.uint32(2**self._right_bits - 1)
        left, right = (values >> self._right_bits).astype(np.uint32), values.astype(np.uint32) & mask
        move, spare, wide = np.empty_like(left), np.empty_like(left), np.empty(len(left), dtype=np.uint64)
        for i in reversed(range(ROUNDS)) if undo else range(ROUNDS):
            if i % 2:
                self._hash(i, left, move, spare)
                np.right_shift(move, np.uint32(32 - self._right_bits), out=move)
                step(right, move, out=right)
                right &= mask
            else:
                self._hash(i, right, move, spare)
                # The high word of hash * height is in [0, height), evenly to 2**-8 at worst (Lemire 2019).
                np.copyto(wide, move)
                wide *= np.uint64(height)
                wide >>= np.uint64(32)
                np.copyto(move, wide, casting="unsafe")
                step(left, move, out=left)
                # Of the sum and the sum with one height taken back, the wrong one is larger: too big, or wrapped.
                back(left, height, out=move)
                np.minimum(left, move, out=left)
        np.left_shift(left, self._right_bits, out=results, dtype=np.int64)
        results |= right

    def _hash(self, i: int, half: Words, move: Words, spare: Words) -> None:
        """Writes 32 bits for each value of a half, keyed by the round; the high bits are the good ones.

        A multiply-add with a random odd multiplier (Dietzfelbinger 1996: universal in its high bits), whose linearity
        an xor-shift and one more multiplication break (constant of the mixer `lowbias32` of C. Wellons).
        """
        multiplier, offset = self._round_keys[i]
        np.multiply(half, multiplier, out=move)
        move += offset
        np.right_shift(move, np.uint32(15), out=spare)
        move ^= spare
        move *= np.uint32(0xD35A2D97)
