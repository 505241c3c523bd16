"""What is inferred passes its own check; what changed is named by sample, and shown as a diff."""

import itertools

import pytest

from headrace.cli import main
from headrace.cli.contract import NUM_CHECKED, _spread
from headrace.contract import Contract

TRAIN = """
import torch

class Images:
    classes = ("oak", "elm")
    odd = None

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if self.odd == "unreadable" and index == 4:
            raise OSError("the file is cut off")
        channels = 1 if self.odd == "shape" and index == 4 else 3
        return {"image": torch.zeros(channels, 8, 8), "label": index % 2}

images = Images()
"""


@pytest.fixture(autouse=True)
def agreed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    assert main(["contract", "train.py:images", "--output", "agreed.toml"]) == 0
    assert capsys.readouterr().out == ""


def break_images(tmp_path, how):
    with (tmp_path / "train.py").open("a") as file:
        file.write(f"Images.odd = {how!r}\n")


def check(capsys):
    status = main(["contract", "train.py:images", "--check", "agreed.toml"])
    return status, capsys.readouterr().out.splitlines()


def test_what_is_printed_is_what_would_be_saved(capsys, tmp_path):
    assert main(["contract", "train.py:images"]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "agreed.toml").read_text()
    contract = Contract.from_toml(printed)
    assert contract.num_samples == 6
    assert contract.field("image").shape == (3, 8, 8)


def test_data_that_did_not_change_are_as_agreed(capsys):
    assert check(capsys) == (0, ["6 of 6 samples checked against agreed.toml: all as agreed"])


def test_an_odd_sample_is_named_and_the_change_shown(capsys, tmp_path):
    break_images(tmp_path, "shape")
    status, lines = check(capsys)
    assert status == 1
    assert lines[0] == "6 of 6 samples checked against agreed.toml: 1 violation"
    assert lines[1].startswith("  sample 4, field image: expected shape (3, 8, 8), found shape (1, 8, 8)")
    changes = [line for line in lines if line.startswith(("- image", "+ image"))]
    assert [line[0] for line in changes] == ["-", "+"]


def test_a_sample_that_cannot_be_loaded_breaks_the_contract(capsys, tmp_path):
    break_images(tmp_path, "unreadable")
    status, lines = check(capsys)
    assert status == 1
    assert lines[1] == "  sample 4: cannot be loaded: OSError: the file is cut off"


def test_nothing_is_inferred_from_a_sample_that_fails_but_its_traceback_is_shown(capsys, tmp_path):
    break_images(tmp_path, "unreadable")
    assert main(["contract", "train.py:images"]) == 2
    error = capsys.readouterr().err
    assert 'raise OSError("the file is cut off")' in error
    assert "sample 4" in error
    assert "fault of headrace" not in error


def test_a_change_of_the_contract_alone_is_no_violation_but_is_shown(capsys, tmp_path):
    text = (tmp_path / "agreed.toml").read_text().replace("num_samples = 6\n", "")
    (tmp_path / "agreed.toml").write_text(text)
    status, lines = check(capsys)
    assert status == 0
    assert "+ num_samples: 6" in lines


@pytest.mark.parametrize("num_samples", [0, 1, 99, 100, 101, 1438, 10**6])
def test_the_spread_is_even_and_has_both_ends(num_samples):
    rows = _spread(num_samples, is_full=False)
    assert rows == sorted(set(rows))
    assert len(rows) == min(num_samples, NUM_CHECKED)
    assert rows[:1] + rows[-1:] == ([0, num_samples - 1] if num_samples else [])
    gaps = {later - row for row, later in itertools.pairwise(rows)}
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


def test_full_is_every_row():
    assert _spread(1000, is_full=True) == list(range(1000))
