"""Bad input is answered with the right exit status and a first line that says what is wrong; never with our traceback."""

import re
import textwrap

import pytest

from headrace.cli import main

HEADER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    length = 8

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index >= 8:
            raise IndexError(f"row {index} of 8")
        return self.sample(index)

    def sample(self, index):
        return torch.tensor([float(index)]), index % 2
"""


@pytest.fixture
def target(tmp_path, monkeypatch):
    """Writes a train.py that ends with `code`, and returns its TARGET."""
    monkeypatch.chdir(tmp_path)

    def write(code, attribute="loader"):
        (tmp_path / "train.py").write_text(HEADER + textwrap.dedent(code))
        return f"train.py:{attribute}"

    return write


@pytest.mark.parametrize(
    ("spec", "first_line"),
    [
        ("train.py", r"headrace: error: TARGET 'train.py' has no ':' between the place and the name of the loader"),
        ("no_such.py:loader", r"headrace: error: TARGET: there is no file no_such.py in .*"),
        ("no_such_module:loader", r"headrace: error: TARGET: there is no module no_such_module.*"),
    ],
)
@pytest.mark.parametrize("command", [["diagnose"], ["contract"], ["replay", "0"]], ids=lambda words: words[0])
def test_a_target_that_cannot_be_read(command, spec, first_line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main([command[0], spec, *command[1:]]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(first_line, error.splitlines()[0])
    assert "Traceback" not in error


@pytest.mark.slow
@pytest.mark.parametrize("command", [["diagnose"], ["contract"], ["replay", "0"]], ids=lambda words: words[0])
def test_a_target_that_raises_at_import_shows_the_users_own_traceback(command, target, capsys):
    spec = target("size = 1 / 0")
    assert main([command[0], spec, *command[1:]]) == 2
    error = capsys.readouterr().err
    assert error.splitlines()[0].endswith("train.py could not be imported: ZeroDivisionError: division by zero")
    assert error.count("Traceback") == 1
    assert "size = 1 / 0" in error
    assert "/headrace/" not in error.partition("Traceback")[2]


def test_an_attribute_that_is_not_there(target, capsys):
    assert main(["contract", target("loader = DataLoader(Numbers())", "loadr")]) == 2
    assert "did you mean 'loader'?" in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize("command", [["contract", "--check"], ["diagnose", "--contract"]], ids=lambda words: words[0])
def test_a_contract_file_with_an_unknown_key(command, target, capsys, tmp_path):
    (tmp_path / "agreed.toml").write_text("format = 1\nnum_sampels = 8\n")
    assert main([command[0], target("loader = Numbers()"), command[1], "agreed.toml"]) == 2
    error = capsys.readouterr().err
    assert "num_sampels" in error.splitlines()[0]
    assert "did you mean 'num_samples'?" in error
    assert "Traceback" not in error


# What `diagnose` says of data sets that are wrong in themselves: (code, exit status, codes of the findings).
DATA_SETS = {
    "healthy": ("loader = DataLoader(Numbers(), batch_size=4)", 0, []),
    "empty": ("Numbers.length = 0\nloader = DataLoader(Numbers(), batch_size=4)", 1, ["HR309"]),
    "shorter than a batch": ("loader = DataLoader(Numbers(), batch_size=16, drop_last=True)", 1, ["HR309"]),
    "a length that lies": ("Numbers.length = 12\nloader = DataLoader(Numbers(), batch_size=4)", 1, ["HR101"]),
    "a sample that is None": (
        "Numbers.sample = lambda *_: None\nloader = DataLoader(Numbers(), batch_size=4)",
        1,
        ["HR306"],
    ),
    "a batch of strings": (
        "Numbers.sample = lambda self, index: f'sentence {index}'\nloader = DataLoader(Numbers(), batch_size=4)",
        0,
        [],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA_SETS)
def test_data_sets_that_are_wrong_in_themselves(name, target, capsys):
    import json

    code, status, codes = DATA_SETS[name]
    assert main(["diagnose", target(code), "--format", "json"]) == status
    report = json.loads(capsys.readouterr().out)
    assert [finding["code"] for finding in report["findings"]] == codes
    assert not [row for row in report["skipped"] if row["crashed"]]


@pytest.mark.slow
def test_an_empty_data_set_has_no_contract(target, capsys):
    assert main(["contract", target("Numbers.length = 0\nloader = Numbers()")]) == 2
    assert capsys.readouterr().err.startswith("headrace: error: ")


def test_a_file_that_cannot_be_written(target, capsys):
    assert main(["rules", "--output", "no/such/folder/rules.txt"]) == 2
    assert capsys.readouterr().err.startswith("headrace: error: cannot write no/such/folder/rules.txt: No such file")


def test_a_fault_of_headrace_is_2_and_shown_whole(monkeypatch, capsys):
    from headrace.doctor import catalogue

    def broken(*args):
        raise RuntimeError("our fault")

    monkeypatch.setattr(catalogue, "rules", broken)
    assert main(["rules"]) == 2
    error = capsys.readouterr().err
    assert "RuntimeError: our fault" in error
    assert error.endswith("headrace failed; this is a fault of headrace itself\n")
