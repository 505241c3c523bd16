"""Whatever goes through slots arrives as it would through the pipe, byte for byte."""

import fractions
import pathlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slot_acts import Pair

from headrace.engine.run import PipeTransport
from headrace.engine.run.packing import pack

TORCH_DTYPES = [torch.uint8, torch.bool, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64]
NUMPY_DTYPES = ["u1", "?", "<i2", ">i4", "f2", "f8", "c16", "U3", "M8[ns]"]
SHAPES = st.lists(st.integers(0, 5), max_size=4)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def tensors(draw):
    generator = torch.Generator().manual_seed(draw(SEEDS))
    tensor = torch.randint(0, 256, draw(SHAPES), generator=generator).to(draw(st.sampled_from(TORCH_DTYPES)))
    match draw(st.sampled_from(["plain", "reversed", "every other", "expanded"])):
        case "reversed":
            return tensor.permute(tuple(reversed(range(tensor.dim()))))
        case "every other" if tensor.dim():
            return tensor[::2]
        case "expanded":
            return tensor.unsqueeze(0).expand(3, *tensor.shape)
    return tensor


@st.composite
def arrays(draw):
    rng = np.random.default_rng(draw(SEEDS))
    array = rng.integers(0, 256, draw(SHAPES)).astype(draw(st.sampled_from(NUMPY_DTYPES)))
    match draw(st.sampled_from(["plain", "fortran", "every other", "read-only"])):
        case "fortran":
            return np.asfortranarray(array)
        case "every other" if array.ndim:
            return array[..., ::2]
        case "read-only":
            array.flags.writeable = False
    return array


OTHERS = st.sampled_from(
    [
        None,
        1,
        2.5,
        "text",
        b"bytes",
        bytearray(b"bytes"),
        fractions.Fraction(1, 3),
        pathlib.PurePosixPath("a/b"),
        np.float32(2),
        np.array([{"an": "object"}, None], dtype=object),
        torch.nn.Parameter(torch.ones(2)),
        {1, 2},
    ]
)
VALUES = st.recursive(
    tensors() | arrays() | OTHERS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def raw(value):
    """Types, structure, dtypes, shapes, layouts and every byte."""
    return [bytes(part) for part in pack(value)]


def through_pipe(value):
    channel = PipeTransport().open(1, 1)
    return channel.decode(0, [memoryview(bytearray(part)) for part in channel.sender(0).encode(value)])


@pytest.fixture(scope="module", params=[0, 64, 1 << 17], ids=lambda least_bytes: f"from {least_bytes} bytes")
def pair(request):
    pair = Pair(least_bytes=request.param)
    yield pair
    pair.close()


@given(values=st.lists(VALUES, min_size=1, max_size=5))
def test_everything_arrives_as_through_the_pipe(pair, values):
    results = [pair.travel(value) for value in values]  # held together: none may lie in another's slot
    assert [raw(result) for result in results] == [raw(through_pipe(value)) for value in values]


def test_a_batch_of_many_fields_is_one_block_in_one_message(make_pair):
    pair = make_pair()
    fields = {f"field {i}": torch.full((300,), i, dtype=torch.float64) for i in range(200)}
    fields["image"] = torch.zeros(1000, 1000)
    result = pair.travel(fields)
    assert raw(result) == raw(through_pipe(fields))
    addresses = sorted(tensor.data_ptr() for tensor in result.values())
    assert all(address % 64 == 0 for address in addresses)
    assert addresses[-1] - addresses[0] < 2 * 4_000_000  # one block
    assert pair.num_in_pipe < 100_000


def test_what_arrives_is_writable_and_stays_as_it_was_written(make_pair):
    pair = make_pair(least_bytes=0)
    tensor, array = pair.travel((torch.zeros(5), np.zeros(5)))
    tensor += 1
    array += 2
    for _ in range(10):
        pair.travel((torch.full((5,), 7.0), np.full(5, 7.0)))
    assert tensor.tolist() == [1] * 5
    assert array.tolist() == [2] * 5
