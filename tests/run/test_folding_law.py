"""Law: a batch that travels folded arrives as it would tensor by tensor: types, dtypes, layouts, bytes, and who is who."""

import collections
import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.blocks import LEAST_FIELDS, MOST_BYTES
from headrace.engine.folding import fold
from headrace.engine.run.packing import pack, unpack
from headrace.engine.work import Delivery

DTYPES = [torch.uint8, torch.bool, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.complex64]


def travel(value):
    """What the wire does: fresh writable memory for each part."""
    return unpack([memoryview(bytearray(part)) for part in pack(value)])


@st.composite
def leaves(draw):
    """An array or tensor of few kinds, so that many are alike, in any layout."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from([(3,), (2, 3), (2, 1, 3, 2), (), (0, 2)]))
    array = rng.integers(0, 2, shape).astype(draw(st.sampled_from(["f4", "i8", ">i4", "?", "U2", "O"])))
    match draw(
        st.sampled_from(["tensor"] * 3 + ["array", "array", "turned", "fortran", "every other", "gradient", "conj"])
    ):
        case "array":
            return array
        case "fortran":
            return np.asfortranarray(array)
        case "every other" if array.ndim:
            return array[..., ::2]
        case "turned":
            return torch.from_numpy(np.array(rng.random(shape))).permute(tuple(reversed(range(len(shape)))))
        case "gradient":
            return torch.from_numpy(np.array(rng.random(shape))).requires_grad_()
        case "conj":
            return torch.from_numpy(np.array(rng.random(shape) + 1j)).conj()
    return torch.from_numpy(rng.integers(0, 2, shape)).to(draw(st.sampled_from(DTYPES)))


@st.composite
def batches(draw):
    """Containers with a few kinds of leaves, each repeated, and sometimes one object in two places."""
    models = draw(st.lists(leaves(), min_size=1, max_size=3))
    parts = []
    for model in models:
        parts += [copy.deepcopy(model) for _ in range(draw(st.sampled_from([1, LEAST_FIELDS, 12])))]
    parts += draw(st.lists(st.sampled_from([None, "text", 3, 2.5, "text", 3, ..., {1}]), max_size=2))
    parts = draw(st.permutations(parts))
    if parts and draw(st.integers(0, 4)) == 0:
        parts.append(parts[0])
    cut = draw(st.integers(0, len(parts)))
    inner = {f"field {place}": part for place, part in enumerate(parts[:cut])}
    rest = parts[cut:]
    return draw(st.sampled_from([[inner, tuple(rest)], (inner, rest, "end"), {"a": inner, "b": {1: rest}}, inner]))


def described(value, seen):
    """Everything that a loop could see of a batch, as plain values."""
    place = seen.setdefault(id(value), len(seen)) if isinstance(value, (torch.Tensor, np.ndarray, list, dict)) else None
    if isinstance(value, torch.Tensor):
        raw = value.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
        layout = [step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1 and value.numel()]
        values = raw.view(torch.uint8).tolist() if raw.numel() else []
        return place, type(value), value.dtype, value.shape, layout, value.requires_grad, value.is_conj(), values
    if isinstance(value, np.ndarray):
        return place, value.dtype, value.shape, value.flags.f_contiguous, value.flags.writeable, value.tolist()
    if isinstance(value, dict):
        return place, type(value), [(key, described(part, seen)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return place, type(value), [described(part, seen) for part in value]
    return type(value), value


@given(batches())
def test_arrives_as_it_would_in_the_plain_way(batch):
    before = described(batch, {})
    plain, folded = travel(batch), travel(fold(batch))
    assert described(folded, {}) == described(plain, {})
    assert described(batch, {}) == before  # what stays behind is not touched


def wide(number, shape=(4,), dtype=torch.float32):
    return {f"f{place}": torch.full(shape, place).to(dtype) for place in range(number)}


def test_many_small_tensors_become_one_buffer():
    assert len(pack(fold(wide(100)))) == 2
    assert len(pack(fold({"x": wide(20), "y": (wide(20, dtype=torch.int64), "text")}))) == 3
    assert len(pack(wide(100))) == 101


@pytest.mark.parametrize(
    "batch",
    [
        wide(LEAST_FIELDS - 1),
        wide(20, (MOST_BYTES // 4 + 1,)),
        collections.OrderedDict(wide(20)),
        {**wide(20), "own": object},
        {**wide(20), "hole": ...},
        [torch.ones(3)] * 20,
        [part := wide(20), part],
        torch.ones(3),
        None,
    ],
    ids=["few", "large", "own type", "unknown", "hole", "one twice", "container twice", "tensor", "none"],
)
def test_everything_else_travels_as_it_is(batch):
    assert fold(batch) is batch


def test_what_arrives_is_as_if_each_field_had_memory_of_its_own():
    fields = list(travel(fold(wide(20))).values())
    for place, field in enumerate(fields):
        assert field.untyped_storage().nbytes() == 16
        field.fill_(-place)
        assert field._version == 1
        assert not field._is_view()
    assert [field.tolist() for field in fields] == [[-place] * 4 for place in range(20)]


def test_a_delivery_folds_its_batch_on_the_way_only():
    delivery = Delivery(batch=wide(20), sample_ids=(), kept=np.arange(0), is_replaced=np.zeros(0, bool))
    assert described(travel(delivery).batch, {}) == described(wide(20), {})
    assert described(pickle.loads(pickle.dumps(delivery, protocol=4)).batch, {}) == described(wide(20), {})
    assert copy.copy(delivery).batch is delivery.batch
