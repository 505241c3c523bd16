"""The worked example: the odd one is named before stacking; after the decision nobody is lost without a word."""

import json
import pathlib
import subprocess
import sys

import pytest

import headrace as hr
from headrace.cli import main

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "odd_one_out.py"


@pytest.fixture(scope="module")
def example(load_file):
    return load_file(SCRIPT)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "code", "sample_id"), [("odd_shape", "HR301", 2), ("odd_target", "HR304", 3)])
def test_the_odd_one_is_named_by_its_id(target, code, sample_id, capsys):
    assert main(["diagnose", f"{SCRIPT}:{target}", "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(row["code"], row["severity"], row["sample_ids"]) for row in findings] == [(code, "error", [sample_id])]


@pytest.mark.slow
def test_after_the_decision_the_loader_is_clean(capsys):
    assert main(["diagnose", f"{SCRIPT}:converted"]) == 0


def test_torch_itself_cannot_stack_them(example):
    with pytest.raises(RuntimeError, match=r"stack expects each tensor to be equal size"):
        next(iter(example.odd_shape()))


def test_converted_all_four_are_there(example):
    (batch,) = example.converted()
    assert batch["image"].shape == (4, 3, 16, 16)
    assert batch.sample_ids == (0, 1, 2, 3)
    for row, image in enumerate(batch["image"]):
        assert (image == row / 4).all()


def test_refused_three_are_there_and_the_fourth_is_in_quarantine(example):
    loader = example.refused()
    (batch,) = loader
    assert batch["image"].shape == (3, 3, 16, 16)
    assert batch.sample_ids == (0, 1, 3)
    assert [refusal.sample_id for refusal in loader.quarantine] == [2]
    assert loader.ledger.delivered + loader.ledger.skipped == 4


def test_the_contract_names_the_label_that_no_class_has(example):
    loader = hr.DataLoader(example.odd_target().dataset, batch_size=4, contract=example.CONTRACT)
    with pytest.raises(Exception, match=r"expected values in 0\.\.3 \(4 classes\), found 4") as caught:
        next(iter(loader))
    assert "sample 3" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


@pytest.mark.slow
def test_the_script_tells_the_story():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "converted: [4, 3, 16, 16] (0, 1, 2, 3)" in done.stdout
    assert "refused:   [3, 3, 16, 16] (0, 1, 3), in quarantine: 2" in done.stdout
