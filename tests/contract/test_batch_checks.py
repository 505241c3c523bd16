"""A batch is held against the contract by row: a wrong value is named by the sample that brought it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import default_collate

from headrace.contract import Contract, Field
from headrace.errors import ContractViolation

IDS = ("a", "b", "c", "d")

PLAIN = Contract(
    fields=(
        Field(name="image", kind="tensor", dtype="uint8", shape=(3, 4, 5), minimum=0, maximum=200),
        Field(name="label", kind="number", dtype="int", shape=(), role="target", num_classes=10),
        Field(name="weight", kind="number", dtype="float", shape=()),
        Field(name="name", kind="string"),
        Field(name="box.xy", kind="sequence", dtype="float", shape=(2,)),
    )
)


def plain_samples(size=4):
    return [
        {
            "image": torch.full((3, 4, 5), row, dtype=torch.uint8),
            "label": row % 10,
            "weight": row / 7,
            "name": f"row {row}",
            "box": {"xy": [0.5, float(row)]},
        }
        for row in range(size)
    ]


@given(st.integers(1, 6))
def test_the_default_batch_of_sound_samples_is_sound(size):
    samples = plain_samples(size)
    assert all(PLAIN.check_sample(sample, 0) == [] for sample in samples)
    assert PLAIN.check_batch(default_collate(samples), range(size)) == []


@pytest.mark.parametrize("container", [tuple, list])
def test_batches_of_tuples_have_places_for_names(container):
    contract = Contract(fields=(Field(name="0", shape=(2,)), Field(name="1", role="target", num_classes=3)))
    batch = container([torch.zeros(4, 2), torch.tensor([0, 1, 2, 3])])
    assert [breach.message for breach in contract.check_batch(batch, IDS)] == [
        "sample d, field 1: expected values in 0..2 (3 classes), found 3"
    ]


def test_a_batch_without_parts_is_one_field():
    contract = Contract(fields=(Field(name="sample", shape=(2,), maximum=1),))
    batch = torch.zeros(4, 2)
    batch[1, 1] = 2
    assert [breach.sample_id for breach in contract.check_batch(batch, IDS)] == ["b"]


def test_keys_with_dots_are_found():
    contract = Contract(fields=(Field(name="a.b", shape=()), Field(name="a.c.d", shape=())))
    batch = {"a": {"c.d": torch.zeros(4)}, "a.b": torch.zeros(4)}
    assert contract.check_batch(batch, IDS) == []


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_every_row_with_a_wrong_value_is_named(is_odd):
    batch = default_collate(plain_samples())
    for row, odd in enumerate(is_odd):
        if odd:
            batch["image"][row, 2, 3, 4] = 201
    breaches = PLAIN.check_batch(batch, IDS)
    assert [breach.sample_id for breach in breaches] == [name for name, odd in zip(IDS, is_odd) if odd]
    assert {breach.message.partition(": ")[2] for breach in breaches} <= {"expected values in 0..200, found 201"}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "image",
            torch.zeros(3, 3, 4, 5, dtype=torch.uint8),
            "expected 4 rows, one per sample, found shape (3, 3, 4, 5)",
        ),
        ("image", torch.zeros(4, 3, 4, 4, dtype=torch.uint8), "expected shape (3, 4, 5), found shape (3, 4, 4)"),
        ("image", torch.zeros(4, 3, 4, 5), "expected dtype uint8, found dtype float32"),
        ("image", torch.tensor(1), "expected 4 rows, one per sample, found shape ()"),
        ("image", "text", "expected a tensor of 4 rows, found string"),
        ("label", torch.zeros(4), "expected dtype int, found dtype float32"),
        ("weight", torch.tensor([0.0, 1.0, float("nan"), 2.0]), None),
        ("name", ["a", "b"], "expected 4 rows, one per sample, found a list of 2"),
    ],
)
def test_one_fault_gives_one_breach(field, value, message):
    breaches = PLAIN.check_batch({**default_collate(plain_samples()), field: value}, IDS)
    if message is None:
        assert [breach.message for breach in breaches] == [
            "sample c, field weight: expected no NaN value, found 1 of 1 values NaN"
        ]
    else:
        assert [breach.message for breach in breaches] == [f"the batch, field {field}: {message}"]


def test_a_missing_field_is_named():
    batch = default_collate(plain_samples())
    del batch["label"]
    assert [breach.message for breach in PLAIN.check_batch(batch, IDS)] == [
        "the batch, field label: expected number int (), target, 10 classes, found no such field"
    ]


# Padded batches.

PADDED = Contract(
    fields=(
        Field(name="tokens", dtype="int64", shape=("T",), minimum=1, padding_value=0, mask="mask"),
        Field(name="frames", dtype="float32", shape=("T", 2), maximum=1, padding_value=9, mask="mask"),
    )
)


def padded_batch():
    is_real = torch.arange(5) < torch.tensor([5, 3, 1, 4])[:, None]
    tokens = torch.where(is_real, torch.arange(1, 6), 0)
    frames = torch.where(is_real[..., None], torch.tensor(0.5), torch.tensor(9.0)).expand(4, 5, 2).clone()
    return {"tokens": tokens, "frames": frames, "mask": is_real}


def test_padding_is_not_taken_for_data():
    assert PADDED.check_batch(padded_batch(), IDS) == []


def test_a_wrong_value_beside_padding_is_named():
    batch = padded_batch()
    batch["tokens"][1, 2] = 0  # the padding value, but the mask calls it real
    batch["frames"][3, 0, 1] = 2.0
    assert [(breach.sample_id, breach.field) for breach in PADDED.check_batch(batch, IDS)] == [
        ("b", "tokens"),
        ("d", "frames"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda batch: batch.pop("mask"), "field mask: expected the mask of padded field tokens, found no such field"),
        (
            lambda batch: batch.update(mask=batch["mask"].long()),
            "field mask: expected dtype bool, found dtype int64",
        ),
        (
            lambda batch: batch.update(mask=batch["mask"][:, :4]),
            "field mask: expected shape (4, 5) as in tokens, found shape (4, 4)",
        ),
    ],
)
def test_a_mask_that_does_not_fit_is_named(change, message):
    batch = padded_batch()
    change(batch)
    assert PADDED.check_batch(batch, IDS)[0].message == f"the batch, {message}"


def test_fields_that_share_a_dim_are_padded_to_one_size():
    batch = padded_batch()
    batch["frames"] = batch["frames"][:, :4]
    assert "the batch, field frames: expected T = 5 as in field tokens, found T = 4" in [
        breach.message for breach in PADDED.check_batch(batch, IDS)
    ]


def test_what_could_not_be_stacked_is_checked_row_by_row():
    contract = Contract(fields=(Field(name="boxes", kind="array", shape=("N", 4), maximum=1),))
    batch = {"boxes": [np.zeros((2, 4)), np.zeros((3, 4)), np.zeros((1, 3)), np.full((1, 4), 2.0)]}
    assert [(breach.sample_id, breach.found) for breach in contract.check_batch(batch, IDS)] == [
        ("c", "shape (1, 3)"),
        ("d", "2.0"),
    ]


def test_a_violation_names_the_sample():
    batch = default_collate(plain_samples())
    batch["label"][2] = 10
    with pytest.raises(ContractViolation) as caught:
        PLAIN.require_batch(batch, IDS)
    assert (caught.value.where.sample_id, caught.value.where.field) == ("c", "label")
    assert caught.value.what == "field label: expected values in 0..9 (10 classes), found 10"
