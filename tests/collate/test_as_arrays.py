"""Without torch samples are joined to the same batch as with it, or not at all."""

import pickle
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from headrace.engine.collate import NotJoined, default_collate, join_as_arrays

DTYPES = "?bBhHiIlLqQefdFDgUSOM"


def layouts(rng, dtype):
    shape = tuple(int(size) for size in rng.integers(0, 4, rng.integers(0, 5)))

    def plain():
        return rng.integers(0, 2, shape).astype(dtype)

    return [
        plain,
        lambda: plain().T,
        lambda: plain()[::-1] if shape else plain(),
        lambda: np.moveaxis(np.ones((3, 4, 1), dtype), -1, 0),
        lambda: plain().view(np.memmap) if shape else plain(),
        lambda: rng.integers(0, 2, tuple(rng.integers(1, 3, 2))).astype(dtype),
        lambda: np.ones(2, np.dtype("i4").newbyteorder()),
        lambda: np.dtype(dtype).type(rng.integers(0, 2)),
    ]


@st.composite
def leaves(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["array", "number", "text", "mixed"]))
    if kind == "array":
        return draw(st.sampled_from(layouts(rng, draw(st.sampled_from(DTYPES[:16])))))
    numbers = [
        lambda: int(rng.integers(-9, 9)),
        lambda: int(rng.integers(9)) << 62,
        lambda: float(rng.normal()),
        lambda: bool(rng.integers(2)),
        lambda: None,
    ]
    if kind == "number":
        return draw(st.sampled_from(numbers))
    if kind == "text":
        return draw(st.sampled_from([lambda: "text" * int(rng.integers(3)), lambda: b"raw", lambda: np.str_("text")]))
    choice = draw(st.lists(st.sampled_from(numbers), min_size=2, max_size=2))
    return lambda: choice[int(rng.integers(2))]()


class Point(NamedTuple):
    x: object


SAMPLES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, min_size=1, max_size=3).map(
            lambda parts: lambda: {name: part() for name, part in parts.items()}
        ),
        st.lists(inner, max_size=3).map(lambda parts: lambda: [part() for part in parts]),
        st.lists(inner, max_size=3).map(lambda parts: lambda: tuple(part() for part in parts)),
        inner.map(lambda part: lambda: Point(part())),
    ),
    max_leaves=5,
)


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        is_alike = a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
        return is_alike and a.numpy().tobytes() == b.numpy().tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def arrived(batch):
    return pickle.loads(pickle.dumps(batch, 5))


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@given(SAMPLES, st.integers(1, 4))
def test_a_batch_is_what_torch_makes_or_is_not_made(make, num_samples):
    samples = [make() for _ in range(num_samples)]
    try:
        joined = join_as_arrays(samples)
    except NotJoined:
        return
    assert same(arrived(joined), default_collate(samples))


@pytest.mark.parametrize(
    "sample",
    [
        *(np.ones((2, 1, 3), dtype) for dtype in "?bBhHiIlLqefdFD"),
        *(np.dtype(dtype).type(1) for dtype in "?bBhHiIlqefdFD"),
        np.array(3.0),
        1,
        2.5,
        True,
        "text",
        b"raw",
        (np.full(4, 7), 3),
        {"x": np.ones((3, 2), np.float32), "at": [1.0, "a"], "flag": False},
    ],
)
def test_what_data_sets_return_is_joined(sample):
    samples = [sample, sample]
    assert same(arrived(join_as_arrays(samples)), default_collate(samples))


@pytest.mark.parametrize(
    "samples",
    [
        [np.ones(2), np.ones(3)],
        [np.ones(2), np.ones(2, np.float32)],
        [np.ones((2, 3)).T, np.ones((2, 3)).T],
        [np.ones((0, 3))],
        [1, 2.0],
        [True, 2],
        [2**63],
        [{"a": 1}, {"b": 1}],
        [(1, 2), (1,)],
        [None],
        [np.uint64(1)],
        [np.ones(2, "Q")],
        [Point(1)],
        [torch.ones(2)],
    ],
)
def test_what_torch_decides_is_left_to_torch(samples):
    with pytest.raises(NotJoined):
        join_as_arrays(samples)
