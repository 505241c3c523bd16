"""Arrays and tensors arrive equal byte for byte, writable, in memory of their own, and outside the pickle."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.run.packing import pack, unpack


def travel(value):
    """What the wire does: fresh writable memory for each part."""
    parts = [memoryview(bytearray(part)) for part in pack(value)]
    return unpack(parts), sum(len(part) for part in parts[1:])


DTYPES = [
    torch.uint8,
    torch.bool,
    torch.int16,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


def raw(tensor):
    return (
        tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8).tolist()
        if tensor.numel()
        else []
    )


@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 4), max_size=4),
    layout=st.sampled_from(["plain", "reversed", "every other", "expanded"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_strided_tensor_arrives_equal(dtype, shape, layout, seed):
    generator = torch.Generator().manual_seed(seed)
    tensor = torch.randint(0, 2, shape, generator=generator).to(dtype)
    if layout == "reversed":
        tensor = tensor.permute(tuple(reversed(range(tensor.dim()))))
    elif layout == "every other" and tensor.dim():
        tensor = tensor[::2]
    elif layout == "expanded":
        tensor = tensor.unsqueeze(0).expand(3, *shape)
    twin, num_outside = travel(tensor)
    assert (twin.dtype, twin.shape) == (tensor.dtype, tensor.shape)
    assert raw(twin) == raw(tensor)
    assert num_outside == tensor.numel() * tensor.element_size()
    twin.zero_()  # writable
    if layout in ("plain", "reversed") and tensor.numel():
        assert twin.stride() == tensor.stride()


def test_lazily_conjugated_and_negated_tensors_arrive_resolved():
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    for lazy in (tensor.conj(), tensor.conj().imag):
        assert travel(lazy)[0].tolist() == lazy.tolist()


def test_channels_last_stays_channels_last():
    tensor = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    twin, _ = travel({"image": tensor})
    assert twin["image"].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(twin["image"], tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.eye(3).to_sparse(),
        torch.ones(2, device="meta"),
    ],
)
def test_other_tensors_go_by_their_own_reduction(tensor):
    twin, _ = travel(tensor)
    assert type(twin) is type(tensor)
    assert (twin.dtype, twin.shape, twin.layout, twin.device) == (
        tensor.dtype,
        tensor.shape,
        tensor.layout,
        tensor.device,
    )
    assert twin.requires_grad == tensor.requires_grad


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=">i4").reshape(3, 4),
        np.asfortranarray(np.random.default_rng(0).random((3, 4))),
        np.arange(20)[::3],
        np.zeros((0, 3), np.float16),
        np.array(5),
        np.array([("a", 1)], dtype=[("name", "U3"), ("n", "i2")]),
        np.array([{"any": "object"}, None], dtype=object),
    ],
)
def test_any_array_arrives_equal(array):
    twin, _ = travel(array)
    assert (twin.dtype, twin.shape) == (array.dtype, array.shape)
    assert twin.tolist() == array.tolist()
    assert twin.flags.writeable
