"""Memory of a batch is never used again while anything can see it, and is used again afterwards."""

import gc

import numpy as np
import pytest
import torch

from headrace.engine import batch_memory as room
from headrace.engine.batch_memory import KEPT_BLOCKS, KEPT_BYTES, MIN_BYTES, batch_memory

SHAPE = (4, MIN_BYTES // 4)

VIEWS = {
    "the array": lambda array: array,
    "a slice": lambda array: array[1:2, ::2],
    "a slice of a reshape": lambda array: array.reshape(-1).view(np.int16)[5:9],
    "a tensor": torch.from_numpy,
    "a row of a tensor": lambda array: torch.from_numpy(array)[2],
    "a tensor of another dtype": lambda array: torch.from_numpy(array).view(torch.int32),
    "an array of a tensor": lambda array: torch.from_numpy(array)[1:].numpy()[0],
    "a tensor of an array of a tensor": lambda array: torch.from_numpy(torch.from_numpy(array.reshape(-1)).numpy()[3:]),
    "a buffer": lambda array: memoryview(array)[1:],
    "an iterator": lambda array: iter(array),
    "by DLPack": lambda array: torch.from_dlpack(array)[0],
}


@pytest.fixture(autouse=True)
def _fresh():
    room._free.clear()
    yield
    gc.collect()
    room._free.clear()


def address(array):
    return array.ctypes.data


@pytest.mark.parametrize("name", VIEWS)
def test_any_view_keeps_the_memory(name):
    array = batch_memory(SHAPE, np.uint8)
    first = address(array)
    view = VIEWS[name](array)
    del array
    for _ in range(3):
        assert address(batch_memory(SHAPE, np.uint8)) != first
    del view
    room._free.rotate()
    assert first in {address(batch) for batch in [batch_memory(SHAPE, np.uint8) for _ in range(3)]}


def test_a_batch_may_be_somewhat_smaller_than_the_memory_it_lies_in():
    first = address(batch_memory((4, MIN_BYTES // 3 + 1), np.uint8))
    assert address(batch_memory((3, MIN_BYTES // 3 + 1), np.uint8)) == first
    assert address(batch_memory((2 * MIN_BYTES,), np.uint8)) != first


def test_dtypes_and_small_arrays():
    large = batch_memory((2, MIN_BYTES), np.float64)
    assert (large.shape, large.dtype, large.flags.c_contiguous, large.flags.writeable) == (
        (2, MIN_BYTES),
        np.float64,
        True,
        True,
    )
    assert batch_memory((3,), np.bool_).flags.owndata


def test_what_waits_is_bounded():
    held = [batch_memory(SHAPE, np.uint8) for _ in range(3 * KEPT_BLOCKS)]
    held.clear()
    assert len(room._free) == KEPT_BLOCKS
    huge = batch_memory((KEPT_BYTES + 1,), np.uint8)
    del huge
    assert sum(block.nbytes for block in room._free) <= KEPT_BYTES
