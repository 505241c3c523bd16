"""Joining is torch's own: equal in structure, type, dtype and value; a failure is explained by sample and field."""

import collections
import pickle
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
import torch.utils.data
from hypothesis import given

from headrace.contract import Contract
from headrace.engine.collate import ContractCollate, default_collate, default_convert, explain_failure, first_difference
from headrace.errors import CollateError, ConfigurationError, Where


class Point(NamedTuple):
    x: Any
    y: Any


LEAVES = st.sampled_from(
    [
        lambda rng: torch.from_numpy(rng.normal(size=(2, 3))),
        lambda rng: rng.integers(0, 9, (4,)).astype(np.int32),
        lambda rng: np.float32(rng.random()),
        lambda rng: int(rng.integers(9)),
        lambda rng: float(rng.random()),
        lambda rng: bool(rng.random() < 0.5),
        lambda rng: "text" * int(rng.integers(3)),
        lambda rng: b"raw",
    ]
)


def containers(inner):
    named = st.dictionaries(st.text("abc.", min_size=1, max_size=2), inner, min_size=1, max_size=3)
    return st.one_of(
        named.map(lambda parts: lambda rng: {name: part(rng) for name, part in parts.items()}),
        named.map(lambda parts: lambda rng: collections.OrderedDict((name, part(rng)) for name, part in parts.items())),
        st.lists(inner, max_size=3).map(lambda parts: lambda rng: [part(rng) for part in parts]),
        st.lists(inner, max_size=3).map(lambda parts: lambda rng: tuple(part(rng) for part in parts)),
        st.tuples(inner, inner).map(lambda parts: lambda rng: Point(*(part(rng) for part in parts))),
    )


@st.composite
def batches(draw):
    """A list of samples of one random structure."""
    make = draw(st.recursive(LEAVES, containers, max_leaves=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return [make(rng) for _ in range(draw(st.integers(1, 4)))]


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


@given(batches())
def test_the_batch_is_torchs(samples):
    assert same(default_collate(samples), torch.utils.data.default_collate(samples))


@given(batches())
def test_a_contract_without_named_dims_joins_as_torch_does(samples):
    collate = ContractCollate(Contract.infer(samples))
    assert not any(field.variable_dims for field in collate.contract.fields)
    assert same(collate(samples), torch.utils.data.default_collate(samples))


@given(batches())
def test_the_batch_of_samples_that_fit_a_contract_fits_it_too(samples):
    contract = Contract.infer(samples)
    assert contract.check_batch(default_collate(samples), range(len(samples))) == []


@given(batches())
def test_one_sample_is_converted_as_torch_does(samples):
    converted, expected = default_convert(samples[0]), torch.utils.data.default_convert(samples[0])
    assert same(converted, expected)


@given(batches())
def test_alike_samples_have_no_difference(samples):
    assert first_difference(samples) is None


def image(channels):
    return torch.zeros(channels, 16, 16)


FAILURES = [
    (
        [(image(3), 0), (image(3), 1), (image(1), 2), (image(3), 3)],
        "samples do not join into a batch: field 0 has shape (3, 16, 16) in sample a and shape (1, 16, 16) in sample c",
        "c",
    ),
    (
        [(image(1), 0), (image(3), 1), (image(3), 2)],  # the first is the odd one
        "samples do not join into a batch: field 0 has shape (3, 16, 16) in sample b and shape (1, 16, 16) in sample a",
        "a",
    ),
    (
        [{"x": [1, 2]}, {"x": [1, 2, 3]}],
        "samples do not join into a batch: field x has length 2 in sample a and length 3 in sample b",
        "b",
    ),
    (
        [{"x": 1, "y": 2}, {"x": 1}],
        "samples do not join into a batch: keys 'x', 'y' in sample a and keys 'x' in sample b",
        "b",
    ),
    (
        [{"x": {"y": 1}}, {"x": {"y": None}}],
        "samples do not join into a batch: field x.y has type int in sample a and None in sample b",
        "b",
    ),
    (
        [torch.zeros(2), torch.zeros(2), None],
        "samples do not join into a batch: type Tensor in sample a and None in sample c",
        "c",
    ),
    (
        [None, None],
        "sample a does not join into a batch: None, expected a tensor, array, number, string, dict or list",
        "a",
    ),
    (
        [{"x": torch.zeros(2)}, {"x": np.zeros(2)}],
        "samples do not join into a batch: field x has type Tensor in sample a and type ndarray in sample b",
        "b",
    ),
    ([3, "three"], "samples do not join into a batch: type int in sample a and type str in sample b", "b"),
    (
        [Point(1, object())] * 2,
        "sample a does not join into a batch: field y has type object, expected a tensor, array, number, string, dict or list",
        "a",
    ),
    (
        [{"x": np.array(["a"])}] * 2,
        "sample a does not join into a batch: field x has an array of dtype <U1, expected numbers",
        "a",
    ),
    (
        [{"name": "a", "x": torch.zeros(2)}, {"name": None, "x": torch.zeros(2)}, {"name": "c", "x": torch.zeros(3)}],
        "samples do not join into a batch: field x has shape (2,) in sample a and shape (3,) in sample c",
        "c",  # a None among text is collected, not joined: it is not the cause
    ),
    (
        [torch.eye(2), torch.eye(2).to_sparse()],
        "samples do not join into a batch: layout torch.strided in sample a and layout torch.sparse_coo in sample b",
        "b",
    ),
]


@pytest.mark.parametrize(("samples", "what", "odd"), FAILURES)
def test_a_failure_names_samples_field_and_both_sides(samples, what, odd):
    with pytest.raises(CollateError) as caught:
        default_collate(samples)
    error = caught.value
    assert isinstance(error.__cause__, (RuntimeError, TypeError, KeyError))
    assert "abcd"[error.difference.place] == odd
    named = explain_failure(samples, "abcd", error, where=Where(epoch=2, stage="collate"))
    assert named.what == what
    assert (named.where.sample_id, named.where.epoch, named.where.stage) == (odd, 2, "collate")
    # What torch itself raised, e.g. through a user's own function that calls torch's, is explained alike.
    assert explain_failure(samples, "abcd", error.__cause__).what == what


def test_a_failure_survives_pickling():
    with pytest.raises(CollateError) as caught:
        default_collate([torch.zeros(2), torch.zeros(3)])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.difference) == (str(caught.value), caught.value.difference)


def test_what_is_not_understood_keeps_torchs_error():
    with pytest.raises(IndexError):
        default_collate([])
    assert explain_failure([1, 2], "ab", ValueError("something else")) is None
    assert explain_failure([1, "b"], "ab", ConfigurationError("says it better")) is None


def test_a_value_that_is_no_tensor_is_named():
    record = np.zeros(2, dtype=[("x", "i4")])
    with pytest.raises(CollateError, match=r"^field meta\.raw cannot become a tensor: ndarray of dtype"):
        default_convert({"x": np.zeros(2), "meta": {"raw": record}})
