"""The library of `kernels.c` gives what numpy gives, byte for byte; where it is missing, nobody notices."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import native
from headrace.engine.order import kernels
from headrace.engine.order.permutation import MAX_POSITIONS, Permutation
from headrace.engine.order.row_hash import RowHashes

KEYS = st.integers(0, 2**128 - 1)
LARGE_SIZES = st.integers(16, 47).flatmap(lambda bits: st.integers(2**bits + 1, 2 ** (bits + 1)))
LENGTHS = st.one_of(st.integers(0, 70), st.sampled_from([1023, 1024, 1025, 2**14 - 1, 2**14 + 1]))
"""With those where the vectors, the blocks of the C file and those of its caller end."""


@pytest.fixture(scope="module", autouse=True)
def library(build_native):
    build_native(kernels.SOURCE)
    kernels._loaded.cache_clear()
    assert kernels._library() is not None
    yield
    kernels._loaded.cache_clear()


def in_numpy(function, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "enabled", False)
        return function(*arguments)


def hashes_of(epoch, positions, indices):
    hashes = RowHashes()
    hashes.add(epoch, positions, indices)
    return hashes.order, hashes.ids


def places(num, length, seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.integers(0, num, length), np.arange(num - 1, num - 1 - min(length, 20), -1)])


@given(LARGE_SIZES, KEYS, LENGTHS, st.integers(0, 2**32))
def test_the_network_is_the_same_both_ways(num, key, length, seed):
    order, values = Permutation(num, key), places(num, length, seed)
    assert np.array_equal(order.forward(values), in_numpy(order.forward, values))
    assert np.array_equal(order.inverse(values), in_numpy(order.inverse, values))


@pytest.mark.parametrize("num", [2**16 + 1, 2**17 + 1, 2**32 + 1, 2**33 + 2**17, MAX_POSITIONS - 1, MAX_POSITIONS])
def test_the_network_is_the_same_where_most_values_walk_on_and_where_none_does(num):
    order = Permutation(num, key=5)
    values = np.concatenate([np.arange(70_000) % num, np.arange(num - 1000, num)])
    indices = order.forward(values)
    assert np.array_equal(indices, in_numpy(order.forward, values))
    assert np.array_equal(order.inverse(indices), values)


def test_any_layout_of_values_will_do():
    order = Permutation(10**6, key=5)
    values = np.arange(30_000)
    for view in (values[::3], values[::-1], values.reshape(100, 300).T, values.astype(np.uint16), values[:0]):
        found = order.forward(view)
        assert found.shape == np.shape(view)
        assert np.array_equal(found, in_numpy(order.forward, view))


@given(st.integers(0, 2**63 - 1), LENGTHS, st.sampled_from([2**10, 2**31, 2**48, 2**63 - 1]), st.integers(0, 2**32))
def test_hashes_are_the_same(epoch, length, most, seed):
    positions, indices = np.random.default_rng(seed).integers(0, most, (2, length), endpoint=True)
    assert hashes_of(epoch, positions, indices) == in_numpy(hashes_of, epoch, positions, indices)
    assert hashes_of(epoch, positions[::2], indices[::2]) == in_numpy(hashes_of, epoch, positions[::2], indices[::2])


def test_several_threads_may_ask_one_order():
    order, expected = Permutation(10**6, key=5), Permutation(10**6, key=5).forward(np.arange(10**5))
    found = [None] * 4

    def ask(place):
        found[place] = [order.forward(np.arange(10**5)) for _ in range(5)]

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(each, expected) for several in found for each in several)


def test_a_missing_or_damaged_library_goes_unnoticed(tmp_path, monkeypatch):
    order = Permutation(10**6, key=5)
    expected = order.forward(np.arange(100)), hashes_of(0, np.arange(100), np.arange(100))
    monkeypatch.setattr(native, "folder", tmp_path)
    for content in (None, b"no library"):
        if content is not None:
            native.library_path(kernels.SOURCE).parent.mkdir(parents=True)
            native.library_path(kernels.SOURCE).write_bytes(content)
        kernels._loaded.cache_clear()
        assert kernels._library() is None
        assert np.array_equal(order.forward(np.arange(100)), expected[0])
        assert hashes_of(0, np.arange(100), np.arange(100)) == expected[1]
    kernels._loaded.cache_clear()
