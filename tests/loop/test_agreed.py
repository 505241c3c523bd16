"""A checkpoint remembers what the loader was to deliver, and a run that goes on with another contract is told."""

import json

import pytest
import torch
from torch import nn

import headrace as hr
from headrace import Contract, Field
from headrace.loop.checkpoint import Promise
from headrace.loop.checkpoint.agreed import contract_differences, contract_of


def image(size=8, dtype="float32", **more):
    return Field(name="image", kind="tensor", dtype=dtype, shape=(3, size, size), **more)


LABEL = Field(name="label", kind="number", dtype="int", role="target", num_classes=4)


class Images:
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return 8

    def __getitem__(self, row):
        return {"image": torch.full((3, self.size, self.size), float(row)), "label": row % 4}


def loader(size, contract):
    return hr.DataLoader(Images(size), 4, contract=contract)


def saved(folder, batches):
    """The manifest of a run of one epoch over a loader."""
    checkpoint = hr.Checkpointer(folder, model=nn.Linear(1, 1), loader=batches)
    for _ in checkpoint.epochs(1):
        for _ in checkpoint.batches():
            checkpoint.step()
    checkpoint.close()
    (manifest,) = folder.glob("step-*/manifest.json")
    return json.loads(manifest.read_text(encoding="utf-8"))


def restored(folder, batches):
    checkpoint = hr.Checkpointer(folder, model=nn.Linear(1, 1), loader=batches)
    found = checkpoint.restore(quiet=True)
    checkpoint.close()
    return found


def test_the_digest_stands_in_the_manifest(tmp_path):
    contract = Contract(fields=(image(), LABEL))
    kept = saved(tmp_path, loader(8, contract))["contract"]
    assert kept == {
        "digest": contract.digest(),
        "extra_fields": "refuse",
        "fields": {
            "image": {"kind": "tensor", "dtype": "float32", "shape": "(3, 8, 8)"},
            "label": {"kind": "number", "dtype": "int"},
        },
    }
    assert restored(tmp_path, loader(8, Contract(fields=(image(), LABEL)))).promise is Promise.BIT_EXACT


def test_a_loader_of_other_shapes_is_no_continuation_and_told_in_words(tmp_path):
    saved(tmp_path, loader(8, Contract(fields=(image(), LABEL))))
    found = restored(tmp_path, loader(16, Contract(fields=(image(16), LABEL))))
    assert found.promise is Promise.CLOSE
    assert found.lost == ("field image: float32 (3, 8, 8) when saved, float32 (3, 16, 16) here",)
    assert "lost: field image: float32 (3, 8, 8) when saved" in str(found)


def test_the_view_of_a_loader_has_its_contract(tmp_path):
    contract = Contract(fields=(image(), LABEL))
    assert saved(tmp_path, loader(8, contract).to("cpu"))["contract"]["digest"] == contract.digest()


def test_torchs_own_loaders_have_none_and_nothing_is_said(tmp_path):
    batches = torch.utils.data.DataLoader(Images(8), 4)
    assert saved(tmp_path, batches)["contract"] is None
    assert restored(tmp_path, torch.utils.data.DataLoader(Images(16), 4)).promise is Promise.BIT_EXACT


@pytest.mark.parametrize("kept", [True, False])
def test_a_contract_that_only_one_side_has_is_no_difference(tmp_path, kept):
    contract = Contract(fields=(image(), LABEL))
    saved(tmp_path, loader(8, contract if kept else None))
    assert restored(tmp_path, loader(8, None if kept else contract)).lost == ()


def told(before, after, **more):
    one, other = (
        contract_of(type("Loader", (), {"contract": Contract(fields=fields, **more)})) for fields in (before, after)
    )
    return contract_differences(one, other)


TEXT = Field(name="text", shape=("T",), dtype="int64")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (image(), image(dtype="uint8"), "field image: float32 (3, 8, 8) when saved, uint8 (3, 8, 8) here"),
        (
            Field(name="x", kind="array", dtype="float32"),
            Field(name="x", kind="tensor", dtype="float32"),
            "field x: array float32 when saved, tensor float32 here",
        ),
        (
            TEXT,
            Field(name="text", shape=("T", "F"), dtype="int64"),
            "field text: int64 (T,) when saved, int64 (T, F) here",
        ),
        (
            Field(name="text", shape=("T",), padding_value=0, mask="mask"),
            Field(name="text", shape=("T",), padding_value=float("-inf"), mask="mask"),
            "field text: (T,), padded with 0 when saved, (T,), padded with -inf here",
        ),
        (
            TEXT,
            Field(name="text", shape=("T",), dtype="int64", padding_value=0, mask="real"),
            "field text: int64 (T,), not padded, no mask when saved, int64 (T,), padded with 0, mask real here",
        ),
    ],
)
def test_what_is_delivered_otherwise_is_told(before, after, words):
    assert told([before], [after]) == [words]


def test_a_field_that_came_or_went_is_told_unless_such_fields_are_passed_over():
    assert told([image(), LABEL], [image()]) == ["field label: int when saved, none here"]
    assert told([image()], [image(), TEXT]) == ["field text: none when saved, int64 (T,) here"]
    assert told([image()], [image(), TEXT], extra_fields="ignore") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (image(), image(minimum=0, maximum=1)),
        (image(), image(axes="CHW", allow_nan=True)),
        (LABEL, Field(name="label", kind="number", dtype="int", role="target", num_classes=5)),
        (Field(name="x"), Field(name="x", kind="tensor", dtype="float32", shape=(3,))),
        (Field(name="x", shape=(3,), mask="m"), Field(name="x", shape=(3,))),
    ],
)
def test_what_is_only_refused_otherwise_or_not_known_of_both_is_no_difference(before, after):
    assert told([before], [after]) == []
