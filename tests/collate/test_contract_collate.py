"""Padding by contract: real values stay, the rest is the padding value, and the mask tells which is which."""

import collections
import pickle
import types
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from headrace.contract import Contract, Field
from headrace.engine.collate import ContractCollate, explain_failure
from headrace.errors import CollateError, ConfigurationError

SEQUENCES = ContractCollate(
    Contract(
        fields=(
            Field(name="tokens", dtype="int64", shape=("T",), padding_value=0, mask="mask"),
            Field(name="frames", dtype="float32", shape=("T", 2), padding_value=-1.5, mask="mask"),
            Field(name="label", kind="number", dtype="int", role="target", num_classes=9),
            Field(name="name", kind="string"),
        )
    )
)


def sequence(length, number=0):
    return {
        "tokens": torch.arange(1, length + 1),
        "frames": torch.full((length, 2), float(number)),
        "label": number % 9,
        "name": f"n{number}",
    }


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_padding_equals_a_loop(lengths):
    samples = [sequence(length, number) for number, length in enumerate(lengths)]
    batch = SEQUENCES(samples)
    longest = max(lengths)
    assert list(batch) == ["tokens", "frames", "label", "name", "mask"]
    assert batch["tokens"].tolist() == [list(range(1, n + 1)) + [0] * (longest - n) for n in lengths]
    assert batch["frames"].tolist() == [
        [[float(row)] * 2] * n + [[-1.5, -1.5]] * (longest - n) for row, n in enumerate(lengths)
    ]
    assert batch["mask"].tolist() == [[True] * n + [False] * (longest - n) for n in lengths]
    assert (batch["tokens"].dtype, batch["frames"].dtype, batch["mask"].dtype) == (
        torch.int64,
        torch.float32,
        torch.bool,
    )
    assert (batch["label"].tolist(), batch["name"]) == (
        [row % 9 for row in range(len(lengths))],
        [f"n{row}" for row in range(len(lengths))],
    )


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_what_was_padded_keeps_the_contract_that_padded_it(lengths):
    samples = [sequence(length, number) for number, length in enumerate(lengths)]
    assert SEQUENCES.contract.check_batch(SEQUENCES(samples), range(len(samples))) == []


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4))
def test_images_are_padded_in_both_named_dims(sizes):
    collate = ContractCollate(
        Contract(fields=(Field(name="image", shape=(3, "H", "W"), axes="CHW", padding_value=0, mask="is_real"),))
    )
    samples = [{"image": torch.rand(3, *size) + 1} for size in sizes]
    batch = collate(samples)
    height, width = (max(axis) for axis in zip(*sizes))
    assert batch["image"].shape == (len(sizes), 3, height, width)
    assert batch["is_real"].shape == (len(sizes), height, width)
    for row, (sample, (h, w)) in enumerate(zip(samples, sizes)):
        assert torch.equal(batch["image"][row, :, :h, :w], sample["image"])
        assert batch["image"][row].count_nonzero() == 3 * h * w
        assert torch.equal(batch["is_real"][row], (batch["image"][row] != 0).all(0))


def test_samples_are_not_changed():
    samples = [sequence(2), sequence(3)]
    before = pickle.dumps(samples)
    SEQUENCES(samples)
    assert pickle.dumps(samples) == before


def test_the_mask_is_there_even_if_nothing_was_padded():
    assert SEQUENCES([sequence(3), sequence(3)])["mask"].all()


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [
        (lambda numbers: numbers, torch.int64),
        (lambda numbers: [float(number) for number in numbers], torch.float64),
        (lambda numbers: np.array(numbers, np.int32), torch.int32),
    ],
)
def test_lists_and_arrays_become_padded_tensors(convert, dtype):
    collate = ContractCollate(Contract(fields=(Field(name="x", shape=("T",), padding_value=7, mask="m"),)))
    batch = collate([{"x": convert([1, 2])}, {"x": convert([3])}])
    assert batch["x"].tolist() == [[1, 2], [3, 7]]
    assert batch["x"].dtype == dtype


def test_an_empty_list_does_not_change_the_dtype():
    collate = ContractCollate(Contract(fields=(Field(name="x", shape=("T",), padding_value=7, mask="m"),)))
    batch = collate([{"x": []}, {"x": [3]}])
    assert (batch["x"].tolist(), batch["x"].dtype) == ([[7], [3]], torch.int64)


def test_a_mask_that_the_samples_bring_is_padded_with_false():
    contract = Contract(
        fields=(
            Field(name="x", shape=("T",), padding_value=0, mask="m"),
            Field(name="m", dtype="bool", shape=("T",), role="mask"),
        )
    )
    samples = [{"x": [1, 2], "m": torch.tensor([True, False])}, {"x": [3], "m": torch.tensor([True])}]
    batch = ContractCollate(contract)(samples)
    assert batch["m"].tolist() == [[True, False], [True, False]]
    assert contract.check_batch(batch, "ab") == []


def test_a_mask_stands_beside_its_field():
    contract = Contract(fields=(Field(name="text.tokens", shape=("T",), padding_value=0, mask="text.mask"),))
    batch = ContractCollate(contract)([{"text": {"tokens": [1, 2]}, "y": 0}, {"text": {"tokens": [1]}, "y": 1}])
    assert batch["text"]["mask"].tolist() == [[True, True], [True, False]]
    elsewhere = Contract(fields=(Field(name="text.tokens", shape=("T",), padding_value=0, mask="mask"),))
    with pytest.raises(ConfigurationError, match=r"(?s)mask 'mask' of padded field text\.tokens.*mask='text\.mask'"):
        ContractCollate(elsewhere)([{"text": {"tokens": [1, 2]}}])


class Tagged(dict):
    """A mapping that carries more than its items."""

    tag = "kept"


@pytest.mark.parametrize("make", [dict, collections.OrderedDict, Tagged, lambda **parts: types.MappingProxyType(parts)])
def test_every_mapping_can_gain_a_mask(make):
    batch = SEQUENCES([make(**sequence(2)), make(**sequence(1))])
    assert batch["mask"].tolist() == [[True, True], [True, False]]
    if make in (collections.OrderedDict, Tagged):
        assert type(batch) is make


class Pair(NamedTuple):
    x: Any
    y: Any


@pytest.mark.parametrize(("make", "name"), [(lambda x, y: (x, y), "0"), (lambda x, y: [x, y], "0"), (Pair, "x")])
def test_tuples_gain_no_mask(make, name):
    samples = [make([1, 2], 0), make([3], 1)]
    with pytest.raises(ConfigurationError, match=f"^mask 'm' of padded field {name} .* cannot be added"):
        ContractCollate(Contract(fields=(Field(name=name, shape=("T",), padding_value=0, mask="m"),)))(samples)


def test_tuples_may_bring_their_mask_or_mark_what_is_ignored():
    samples = [([1, 2], torch.ones(2), [5, 6]), ([3], torch.ones(1), [7])]
    fields = (
        Field(name="0", shape=("T",), padding_value=0, mask="1"),
        Field(name="1", shape=("T",), role="mask"),
        Field(name="2", shape=("T",), role="target", padding_value=-100, ignore_index=-100),
    )
    x, mask, y = ContractCollate(Contract(fields=fields))(samples)
    assert (x.tolist(), mask.tolist(), y.tolist()) == ([[1, 2], [3, 0]], [[1, 1], [1, 0]], [[5, 6], [7, -100]])


def test_a_sample_without_parts_has_no_place_for_a_mask():
    field = Field(name="sample", shape=("T",), padding_value=0, mask="m")
    with pytest.raises(ConfigurationError, match=r"^mask 'm' of padded field sample"):
        ContractCollate(Contract(fields=(field,)))([torch.zeros(2), torch.zeros(1)])
    target = Field(name="sample", shape=("T",), role="target", padding_value=-100, ignore_index=-100)
    batch = ContractCollate(Contract(fields=(target,)))([torch.zeros(2), torch.zeros(1)])
    assert batch.tolist() == [[0, 0], [0, -100]]


@pytest.mark.parametrize(
    ("fields", "samples", "what"),
    [
        (
            (Field(name="x", shape=("T",)),),
            [{"x": torch.zeros(2)}, {"x": torch.zeros(2)}, {"x": torch.zeros(3)}],
            "samples do not join into a batch: field x has T = 2 in sample a and T = 3 in sample c",
        ),
        (
            (Field(name="x", shape=(3, "T"), padding_value=0, mask="m"),),
            [{"x": torch.zeros(3, 2)}, {"x": torch.zeros(1, 2)}],
            "sample b does not join into a batch: field x has shape (1, 2), expected shape (3, T)",
        ),
        (
            (Field(name="x", shape=("T",), padding_value=0, mask="m"), Field(name="y", shape=("T", 2))),
            [{"x": torch.zeros(2), "y": torch.zeros(2, 2)}, {"x": torch.zeros(2), "y": torch.zeros(3, 2)}],
            "sample b does not join into a batch: field y has T = 3, expected T = 2 as in field x",
        ),
        (
            (Field(name="x", shape=("T",), padding_value=0, mask="m"), Field(name="y", shape=(2,))),
            [{"x": torch.zeros(2), "y": torch.zeros(2)}, {"x": torch.zeros(1), "y": torch.zeros(3)}],
            "samples do not join into a batch: field y has shape (2,) in sample a and shape (3,) in sample b",
        ),
    ],
)
def test_a_refusal_names_the_sample_and_the_field(fields, samples, what):
    with pytest.raises(CollateError) as caught:
        ContractCollate(Contract(fields=fields))(samples)
    named = explain_failure(samples, "abc", caught.value)
    assert named.what == what


def test_a_missing_declaration_is_named():
    collate = ContractCollate(Contract(fields=(Field(name="x", shape=("T",)),)))
    with pytest.raises(CollateError, match="field x has no padding_value in the contract"):
        collate([{"x": torch.zeros(2)}, {"x": torch.zeros(3)}])
    assert collate([{"x": torch.zeros(2)}, {"x": torch.ones(2)}])["x"].shape == (2, 2)


@pytest.mark.parametrize(
    ("dtype", "fill"), [(torch.uint8, -100), (torch.int64, 0.5), (torch.bool, 2), (torch.int64, float("inf"))]
)
def test_a_padding_value_that_the_dtype_cannot_hold_is_refused(dtype, fill):
    collate = ContractCollate(Contract(fields=(Field(name="x", shape=("T",), padding_value=fill, mask="m"),)))
    with pytest.raises(ConfigurationError, match=f"^padding_value {fill} of field x does not fit dtype"):
        collate([{"x": torch.zeros(2, dtype=dtype)}, {"x": torch.zeros(1, dtype=dtype)}])


def test_minus_infinity_pads_floating_fields():
    collate = ContractCollate(Contract(fields=(Field(name="x", shape=("T",), padding_value=float("-inf"), mask="m"),)))
    assert collate([{"x": [1.5]}, {"x": [0.5, 2.0]}])["x"].tolist() == [[1.5, float("-inf")], [0.5, 2.0]]


def test_a_collate_survives_pickling():
    again = pickle.loads(pickle.dumps(SEQUENCES))
    assert again == SEQUENCES
    assert torch.equal(again([sequence(2), sequence(1)])["tokens"], SEQUENCES([sequence(2), sequence(1)])["tokens"])
