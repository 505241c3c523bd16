"""Every change of a row changes half of its hash's bits; sums of hashes agree for equal rows only."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import stats

from headrace.engine.order import kernels
from headrace.engine.order.mixing import stir64
from headrace.engine.order.row_hash import BLOCK, RowHashes

LEAST_P = 1e-5
"""Some hundred p-values are judged here, on fixed rows: a fair hash passes all of them, and always will."""


def sums_of(epoch, positions, indices):
    """(4,) sums of the hashes of rows: order low, order high, id low, id high."""
    hashes = RowHashes()
    hashes.add(epoch, positions, indices)
    hashes._hash()
    return hashes._sums


def hash_each(epoch, positions, indices):
    """(B, 4) hashes of single rows."""
    places = range(len(indices))
    return np.array([sums_of(epoch, positions[i : i + 1], indices[i : i + 1]) for i in places])


def bits_of(words):
    """(..., 64) bits of (...) words."""
    return (words[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)


def assert_balanced(bits):
    """Each column of bits is 1 in half of the rows, as far as chance allows."""
    num_rows = len(bits)
    ones = bits.reshape(num_rows, -1).sum(0).astype(float)
    p_values = 2 * stats.norm.sf(np.abs(ones - num_rows / 2) / np.sqrt(num_rows / 4))
    assert p_values.min() > LEAST_P
    assert stats.kstest(p_values, "uniform").pvalue > LEAST_P


POSITIONS, INDICES = np.arange(3000), np.arange(3000) * 7 % 3001


@pytest.mark.parametrize("bit", [0, 1, 7, 20, 40])
@pytest.mark.parametrize("column", ["epoch", "position", "index"])
def test_one_changed_bit_of_a_row_flips_half_of_the_bits(column, bit):
    # Far apart, since rows that become each other would have the same flipped bits.
    indices, change = np.random.default_rng(0).integers(0, 2**48, 3000), 1 << bit
    epoch = 3 ^ change if column == "epoch" else 3
    moved = POSITIONS ^ change if column == "position" else POSITIONS
    others = indices ^ change if column == "index" else indices
    flipped = bits_of(hash_each(3, POSITIONS, indices) ^ hash_each(epoch, moved, others))
    if column == "position":
        assert not flipped[:, 2:].any()  # a position is no part of the multiset of ids
        flipped = flipped[:, :2]
    assert_balanced(flipped)


def test_halves_of_neighbouring_rows_are_balanced_and_all_different():
    hashes = np.concatenate([hash_each(epoch, POSITIONS, INDICES) for epoch in range(4)])
    assert len(np.unique(hashes)) == hashes.size
    assert_balanced(bits_of(hashes))
    assert_balanced(bits_of(hashes[1:] ^ hashes[:-1]))


def test_the_high_half_sees_what_the_low_half_does_not():
    # Four rows that, two and two, agree in the sum of their low halves; their hashes are any numbers.
    first, second, moved = np.random.default_rng(0).integers(0, 2**64, (3, 20_000), dtype=np.uint64)
    mine = stir64(first.copy()) + stir64(second.copy())
    theirs = stir64(first + moved) + stir64(second - moved)
    assert_balanced(bits_of(mine - theirs))


@pytest.mark.parametrize("num", [2, 3, 100, 10_000])
def test_rows_that_change_places_change_the_order_and_not_the_ids(num):
    rng = np.random.default_rng(num)
    seen = set()
    for _ in range(200):
        swapped = np.arange(num)
        a, b = rng.choice(num, 2, replace=False)
        swapped[[a, b]] = swapped[[b, a]]
        sums = sums_of(0, np.arange(num), swapped)
        seen.add(((min(a, b), max(a, b)), tuple(sums.tolist())))
    assert len({pair for pair, _ in seen}) == len({sums[:2] for _, sums in seen}) == len({s[0] for _, s in seen})
    assert len({sums[2:] for _, sums in seen}) == 1


def test_samples_that_came_twice_are_told_from_those_that_never_came():
    everyone, sums = np.arange(500), set()
    for twice in range(50):
        for never in range(50, 100):
            indices = everyone.copy()
            indices[never] = twice
            sums.add(tuple(sums_of(0, everyone, indices)[2:].tolist()))
    assert len(sums) == 50 * 50


def test_epochs_positions_and_indices_do_not_stand_in_for_each_other():
    rows = np.array(list(np.ndindex(12, 12, 12)))
    hashes = np.concatenate(
        [hash_each(epoch, *rows[rows[:, 0] == epoch, 1:].T) for epoch in range(12)],
    )
    assert len(np.unique(hashes[:, :2])) == 2 * len(rows)
    assert len(np.unique(hashes[:, 2:])) == 2 * 12 * 12


@pytest.mark.parametrize("by_kernel", [True, False])
def test_sums_do_not_depend_on_how_rows_were_added(by_kernel, monkeypatch):
    monkeypatch.setattr(kernels, "enabled", by_kernel)
    epochs, positions = np.divmod(np.arange(3 * BLOCK + 5), 2 * BLOCK)
    rng, expected = np.random.default_rng(0), sums_of(0, positions[epochs == 0], positions[epochs == 0])
    expected += sums_of(1, positions[epochs == 1], positions[epochs == 1])
    for longest in (1000, BLOCK, 2 * BLOCK):
        whole, rest = RowHashes(), RowHashes()
        low = 0
        while low < len(positions):
            high = min(low + int(rng.integers(1, longest)), len(positions))
            for epoch in (0, 1):
                rows = positions[low:high][epochs[low:high] == epoch]
                (whole if rng.random() < 0.7 else rest).add(epoch, rows, rows)
            assert rng.random() < 0.9 or whole.order  # read at any time
            low = high
        whole.include(pickle.loads(pickle.dumps(deepcopy(rest))))
        assert whole._sums.tolist() == expected.tolist()


def test_rows_are_hashed_as_they_were_when_they_were_added():
    hashes, rows = RowHashes(), np.arange(100)
    hashes.add(0, rows, rows)
    expected = sums_of(0, rows, rows)
    rows += 1
    assert hashes.order
    assert hashes._sums.tolist() == expected.tolist()
