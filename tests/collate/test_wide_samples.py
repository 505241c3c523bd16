"""Law: samples of many fields join as torch joins them, whatever the fields are."""

import collections
import io

import numpy as np
import pytest
import torch
import torch.utils.data
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine import blocks
from headrace.engine.blocks import LEAST_FIELDS, MOST_BYTES
from headrace.engine.collate import default_collate
from headrace.errors import CollateError

TORCH_DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
NUMPY_DTYPES = ["f4", "f8", "i8", "u1", "?", "u2", "c8", "q"]
SHAPES = [(), (3,), (2, 3), (1, 3), (2, 2, 3), (0,), (MOST_BYTES // 8,), (5000,)]


@st.composite
def columns(draw, num_samples):
    """The values of one field in all samples: nearly always of one kind, rarely one of them of another."""
    seed = draw(st.integers(0, 2**32 - 1))
    makers = [draw(st.sampled_from(MAKERS)) for _ in range(1 + (draw(st.integers(0, 9)) == 0))]
    shape, number = draw(st.sampled_from(SHAPES)), draw(st.integers(0, 6))
    rng = np.random.default_rng(seed)
    return [makers[-1 if place == num_samples - 1 else 0](rng, shape, number) for place in range(num_samples)]


MAKERS = [
    lambda rng, shape, number: torch.from_numpy(rng.integers(0, 2, shape)).to(TORCH_DTYPES[number]),
    lambda rng, shape, number: torch.from_numpy(rng.integers(0, 2, shape[::-1])).permute(
        tuple(reversed(range(len(shape))))
    ),
    lambda rng, shape, number: torch.from_numpy(rng.integers(0, 2, (*shape, 2)))[..., 0],
    lambda rng, shape, number: torch.from_numpy(np.array(rng.random(shape))).requires_grad_(),
    lambda rng, shape, number: torch.nn.Parameter(torch.from_numpy(np.array(rng.random(shape))), requires_grad=False),
    lambda rng, shape, number: np.array(rng.integers(0, 2, shape)).astype(NUMPY_DTYPES[number]),
    lambda rng, shape, number: np.asfortranarray(rng.random(shape)),
    lambda rng, shape, number: rng.random((*shape, 2))[..., 0],
    lambda rng, shape, number: int(rng.integers(-9, 9)),
    lambda rng, shape, number: float(rng.random()),
    lambda rng, shape, number: bool(rng.integers(2)),
    lambda rng, shape, number: np.float32(rng.random()),
    lambda rng, shape, number: 2**62 * int(rng.integers(1, 5)),
    lambda rng, shape, number: "text",
    lambda rng, shape, number: {"x": float(rng.random()), "y": [1, "text"]},
]


@st.composite
def wide_batches(draw):
    num_samples = draw(st.integers(1, 4))
    kinds = draw(st.lists(columns(num_samples), min_size=1, max_size=3))
    fields = [column for column in kinds for _ in range(draw(st.sampled_from([1, LEAST_FIELDS, 12])))]
    rows = [list(row) for row in zip(*draw(st.permutations(fields)), strict=True)]
    names = [f"field {place}" for place in range(len(fields))]
    match draw(st.sampled_from(["dict", "list", "tuple", "nested", "own"])):
        case "dict":
            return [dict(zip(names, row, strict=True)) for row in rows]
        case "list":
            return rows
        case "tuple":
            return [tuple(row) for row in rows]
        case "own":
            return [collections.OrderedDict(zip(names, row, strict=True)) for row in rows]
    return [(dict(zip(names, row, strict=True)), {"label": 1, "more": [row]}) for row in rows]


def described(value):
    if isinstance(value, torch.Tensor):
        layout = [step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1 and value.numel()]
        raw = value.detach().contiguous().reshape(-1)
        return type(value), value.dtype, value.shape, layout, value.requires_grad, raw.view(torch.uint8).tolist()
    if isinstance(value, dict):
        return type(value), [(name, described(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [described(part) for part in value]
    return type(value), value


def joined(collate, samples):
    try:
        return described(collate(samples))
    except CollateError as error:
        return type(error.__cause__), str(error.__cause__)
    except Exception as error:
        return type(error), str(error)


@given(wide_batches())
def test_the_batch_is_torchs(samples):
    assert joined(default_collate, samples) == joined(torch.utils.data.default_collate, samples)


@given(st.data())
def test_dtypes_are_promoted_as_torch_promotes_them_field_by_field(data):
    """The one comparison at the end stands for one per tensor: see `blocks._join_tensors`."""
    first = data.draw(st.sampled_from(TORCH_DTYPES))
    dtypes = [
        [first, *data.draw(st.lists(st.sampled_from(TORCH_DTYPES), min_size=1, max_size=2))]
        for _ in range(LEAST_FIELDS)
    ]
    num_samples = min(map(len, dtypes))
    samples = [[torch.ones(2, dtype=field[place]) for field in dtypes] for place in range(num_samples)]
    assert joined(default_collate, samples) == joined(torch.utils.data.default_collate, samples)


def wide(number, value):
    return {f"f{place}": value(place) for place in range(number)}


@pytest.mark.parametrize("value", [lambda n: torch.full((3,), n), lambda n: np.full((2, 2), n), lambda n: n])
def test_fields_are_joined_together_and_yet_each_is_its_own(value, monkeypatch):
    calls = []
    monkeypatch.setattr(torch, "stack", lambda *args, stack=torch.stack: calls.append(1) or stack(*args))
    batch = default_collate([wide(50, value), wide(50, value)])
    assert len(calls) <= 1
    for place, field in enumerate(batch.values()):
        assert field.untyped_storage().nbytes() == field.numel() * field.element_size()
        assert not field._is_view()
        field.fill_(-place)
        assert field._version == 1
    assert all((field == -place).all() for place, field in enumerate(batch.values()))
    saved = io.BytesIO()
    torch.save(batch["f3"], saved)
    assert saved.tell() < 2000
    with pytest.raises(RuntimeError, match="not resizable"):
        batch["f3"].resize_(1000)


def test_rules_that_somebody_added_hold_for_wide_samples_too(monkeypatch):
    from torch.utils.data._utils.collate import default_collate_fn_map

    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, lambda batch, *, collate_fn_map: "own")
    samples = [wide(20, lambda n: torch.ones(2))] * 2
    assert set(default_collate(samples).values()) == {"own"}


class Own(torch.Tensor):
    pass


def test_subclasses_join_in_their_own_way():
    samples = [wide(20, lambda n: torch.ones(2).as_subclass(Own))] * 2
    assert {type(field) for field in default_collate(samples).values()} == {Own}
    assert (
        blocks.join(
            blocks.BlockKind(torch.Tensor, torch.float32, (2,)), [torch.ones(2), torch.ones(2).as_subclass(Own)]
        )
        is None
    )


class Wide:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return {
            **wide(30, lambda n: torch.full((3,), index + n)),
            **{f"n{n}": index * n for n in range(10)},
            "id": str(index),
        }


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_delivers_what_torchs_does(num_workers):
    expected = [described(batch) for batch in torch.utils.data.DataLoader(Wide(), batch_size=16)]
    assert [
        described(dict(batch)) for batch in hr.DataLoader(Wide(), batch_size=16, num_workers=num_workers)
    ] == expected
