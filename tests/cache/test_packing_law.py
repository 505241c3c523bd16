"""What is packed comes back: same classes, dtypes, shapes and bytes; what would not is refused."""

import collections
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stnp

from headrace.engine.cache.packing import Unpackable, pack, unpack

DTYPES = st.one_of(
    stnp.boolean_dtypes(),
    stnp.integer_dtypes(endianness="?"),
    stnp.floating_dtypes(endianness="?"),
    stnp.complex_number_dtypes(),
    stnp.datetime64_dtypes(),
    stnp.unicode_string_dtypes(min_len=1, max_len=5),
    stnp.byte_string_dtypes(min_len=1, max_len=5),
)
SHAPES = stnp.array_shapes(min_dims=0, min_side=0, max_side=4)
ARRAYS = stnp.arrays(DTYPES, SHAPES)
TENSORS = st.builds(
    lambda dtype, shape: (torch.rand(shape) * 100).to(dtype),
    st.sampled_from(
        [torch.float32, torch.bfloat16, torch.float16, torch.uint8, torch.int64, torch.bool, torch.complex64]
    ),
    SHAPES,
)
LEAVES = st.one_of(
    ARRAYS,
    ARRAYS.map(lambda array: array.T),
    TENSORS,
    TENSORS.map(lambda tensor: tensor.mT if tensor.ndim > 1 else tensor),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(),
    st.binary(),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(np.int16, st.integers(-5, 5)),
)
SAMPLES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.dictionaries(st.one_of(st.text(), st.integers()), parts, max_size=4),
        st.lists(parts, max_size=4),
        st.lists(parts, max_size=4).map(tuple),
    ),
    max_leaves=8,
)


def shown(value):
    """Everything that must not change, as something that can be compared."""
    if isinstance(value, dict):
        return dict, [(key, shown(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shown(part) for part in value]
    if isinstance(value, torch.Tensor):
        return torch.Tensor, value.dtype, tuple(value.shape), value.contiguous().reshape(-1).view(torch.uint8).tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value), value.dtype.str, value.shape, value.tobytes()
    return type(value), repr(value)


def through(sample):
    packed = pack(sample)
    block = np.zeros(packed.num_bytes, np.uint8)
    packed.write(block)
    return unpack(packed.layout, block)


@given(SAMPLES)
def test_what_is_packed_comes_back(sample):
    assert shown(through(sample)) == shown(sample)


def test_what_comes_back_can_be_written_to():
    back = through({"a": np.arange(3), "t": torch.arange(3)})
    back["a"][0] = 7
    back["t"][0] = 7
    assert back["a"][0] == back["t"][0] == 7


class Pair(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        np.array([None]),
        np.zeros(2, [("a", "i4")]),
        np.ma.masked_array([1]),
        torch.zeros(2, requires_grad=True),
        torch.nn.Parameter(torch.zeros(2)),
        torch.eye(2).to_sparse(),
        collections.OrderedDict(a=1),
        Pair(1, 2),
        {1.5: 1},
        {True: 1},
        object(),
        bytearray(2),
    ],
)
def test_what_would_come_back_as_something_else_is_refused(value):
    with pytest.raises(Unpackable, match=r"^sample"):
        pack({"x": value} if not isinstance(value, dict) else value)


def test_a_list_that_holds_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(Unpackable, match="nested deeper than 32 levels"):
        pack(endless)
