"""One fault in a sound sample gives one breach, at that field, with both values; a sound sample gives none."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.contract import Contract, Field
from headrace.errors import ContractViolation

CONTRACT = Contract(
    fields=(
        Field(name="image", kind="tensor", dtype="float32", shape=(3, "H", "W"), axes="CHW", minimum=0, maximum=1),
        Field(name="tokens", kind="tensor", dtype="int64", shape=("T",), mask="mask", padding_value=0),
        Field(name="mask", kind="tensor", dtype="bool", shape=("T",), role="mask"),
        Field(name="label", kind="number", dtype="int", shape=(), role="target", num_classes=10, ignore_index=-100),
        Field(name="box.xy", kind="sequence", dtype="float", shape=(2,), allow_nan=True),
        Field(name="note", kind="string", required=False),
    )
)


def sound(height=5, width=7, length=4):
    return {
        "image": torch.rand(3, height, width),
        "tokens": torch.arange(length),
        "mask": torch.ones(length, dtype=torch.bool),
        "label": 9,
        "box": {"xy": [0.5, 1.5]},
        "note": "seen",
    }


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.sampled_from([0, 9, -100]), st.booleans())
def test_a_sound_sample_gets_silence(height, width, length, label, has_note):
    sample = {**sound(height, width, length), "label": label}
    if not has_note:
        del sample["note"]
    assert CONTRACT.check_sample(sample, 0) == []
    CONTRACT.require_sample(sample, 0)


def with_value(field, value):
    return {**sound(), field: value}


BAD_PIXEL = torch.rand(3, 5, 7)
BAD_PIXEL[2, 4, 6] = 1.5
NAN_PIXEL = torch.rand(3, 5, 7)
NAN_PIXEL[0, 0, :2] = float("nan")
INF_PIXEL = torch.rand(3, 5, 7)
INF_PIXEL[0, 0, 0] = float("-inf")


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (with_value("image", torch.rand(1, 5, 7)), "field image: expected shape (3, H, W), found shape (1, 5, 7)"),
        (
            with_value("image", torch.rand(5, 7, 3)),
            "field image: expected shape (3, H, W), found shape (5, 7, 3); axes look like HWC: move the last axis first",
        ),
        (with_value("image", torch.rand(5, 7)), "field image: expected shape (3, H, W), found shape (5, 7)"),
        (with_value("image", np.zeros((3, 5, 7), np.float32)), "field image: expected kind tensor, found kind array"),
        (with_value("image", torch.rand(3, 5, 7).double()), "field image: expected dtype float32, found dtype float64"),
        (with_value("image", BAD_PIXEL), "field image: expected values in 0..1, found 1.5"),
        (with_value("image", NAN_PIXEL), "field image: expected no NaN value, found 2 of 105 values NaN"),
        (with_value("image", INF_PIXEL), "field image: expected no infinite value, found 1 of 105 values infinite"),
        (with_value("image", object()), "field image: expected kind tensor, found kind object"),
        (with_value("tokens", torch.arange(3)), "field mask: expected T = 3 as in field tokens, found T = 4"),
        (with_value("label", 10), "field label: expected values in 0..9 (10 classes), found 10"),
        (with_value("label", -1), "field label: expected values in 0..9 (10 classes), found -1"),
        (with_value("label", True), "field label: expected kind number, found kind boolean"),
        (with_value("label", 1.0), "field label: expected dtype int, found dtype float"),
        (with_value("label", "1"), "field label: expected kind number, found kind string"),
        (
            with_value("label", None),
            "field label: expected number int (), target, 10 classes, -100 is ignored, found None",
        ),
        (with_value("box", {"xy": [0.5]}), "field box.xy: expected shape (2,), found shape (1,)"),
        (with_value("lable", 3), "field lable: expected no field of this name, found one; did you mean 'label'?"),
    ],
)
def test_one_fault_gives_one_breach_with_both_values(sample, message):
    assert [breach.message for breach in CONTRACT.check_sample(sample, "a.png")] == [f"sample a.png, {message}"]


def test_a_missing_field_is_incomplete_input():
    sample = sound()
    sample["lable"] = sample.pop("label")
    missing, extra = CONTRACT.check_sample(sample, 3)
    assert (missing.field, missing.is_incomplete) == ("label", True)
    assert missing.found == "no such field; did you mean 'lable'?"
    assert (extra.field, extra.is_incomplete) == ("lable", False)


def test_a_wrong_shape_does_not_hide_a_wrong_value():
    breaches = CONTRACT.check_sample(with_value("image", torch.full((1, 5, 7), 2.0)), 0)
    assert [breach.found for breach in breaches] == ["shape (1, 5, 7)", "2.0"]


@pytest.mark.parametrize(
    ("axes", "dims", "shape", "advice"),
    [
        ("HWC", ("H", "W", 3), (3, 16, 17), "axes look like CHW: move the first axis last"),
        ("CHW", ("C", "H", "W"), (16, 17, 3), "axes look like HWC: move the last axis first"),
        ("CHW", ("C", "H", "W"), (3, 16, 17), None),
        ("CHW", ("C", "H", "W"), (64, 4, 4), None),  # a feature map: many channels, small
        ("CHW", (3, "H", "W"), (3, 16, 3), None),  # reads either way, so nothing is said
        ("TCHW", ("T", 3, "H", "W"), (3, 16, 17, 9), "axes look like CHWT: move the last axis first"),
    ],
)
def test_swapped_axes_are_recognised(axes, dims, shape, advice):
    contract = Contract(fields=(Field(name="sample", shape=dims, axes=axes),))
    hints = [breach.hint for breach in contract.check_sample(np.zeros(shape), 0)]
    assert hints == ([] if advice is None else [advice])


def test_a_violation_carries_its_place():
    with pytest.raises(ContractViolation) as caught:
        CONTRACT.require_sample({**sound(), "label": 10, "image": torch.rand(1, 5, 7)}, "3/a.png")
    assert caught.value.what == "field image: expected shape (3, H, W), found shape (1, 5, 7) (and 1 more)"
    assert (caught.value.where.sample_id, caught.value.where.field) == ("3/a.png", "image")


@pytest.mark.parametrize(("may_filter", "num_breaches"), [(False, 1), (True, 0)])
def test_filtering_must_be_declared(may_filter, num_breaches):
    contract = Contract(fields=CONTRACT.fields, num_samples=10, may_filter=may_filter)
    assert len(contract.check_sample(None, 0)) == num_breaches
    assert len(contract.check_stage(sound(), None, 0, stage="clean")) == num_breaches
    assert len(contract.check_size(9)) == num_breaches
    assert contract.check_size(10) == []
    assert [breach.message for breach in contract.check_size(11)] == ["the data set: expected 10 samples, found 11"]


@pytest.mark.parametrize(("may_reshape", "fields"), [(False, ["image"]), (True, [])])
def test_reshaping_must_be_declared(may_reshape, fields):
    contract = Contract(fields=CONTRACT.fields, may_reshape=may_reshape)
    breaches = contract.check_stage(sound(5, 7), sound(4, 7), 0, stage="crop")
    assert [breach.field for breach in breaches] == fields
    assert contract.check_stage(sound(), sound(), 0, stage="flip") == []


def test_a_sample_is_not_changed_by_a_look():
    sample = sound()
    image = sample["image"].clone()
    CONTRACT.check_sample(sample, 0)
    assert torch.equal(sample["image"], image)
