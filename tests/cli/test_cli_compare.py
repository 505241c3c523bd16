"""`headrace compare`: usage, exit status, JSON."""

import json

import pytest

from headrace.cli import main

FILE = """
from torch.utils.data import DataLoader

def some(): return DataLoader([[number, 1] for number in range(12)], batch_size=4)
def fewer(): return DataLoader([[number, 1] for number in range(11)], batch_size=4)
"""


@pytest.fixture
def target(tmp_path):
    (tmp_path / "lists.py").write_text(FILE)
    return lambda name: f"{tmp_path}/lists.py:{name}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "two settings"),
        (["--workers", "2,2"], "two settings"),
        (["--workers", "none"], "such as 0,2"),
        (["--workers", "0,1", "--level", "E9"], "E0, E1, E2"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(words, said, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["compare", "nowhere.py:loader", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_record_as_json_and_the_exit_status(target, capsys):
    words = ["compare", target("some"), target("fewer"), "--epochs", "1", "--level", "E1", "--format", "json"]
    assert main(words) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "different"
    assert told["summary"].startswith("not the same: sample 11 is delivered once in A and not delivered in B")
    assert [level["verdict"] for level in told["levels"]] == ["differs", "differs", *["not asked"] * 4]


def test_workers_that_cannot_be_changed(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(
        "class Own:\n    def __iter__(self):\n        return iter([1, 2, 3])\n\ndef make():\n    return Own()\n"
    )
    assert main(["compare", f"{path}:make", "--workers", "0,2"]) == 2
    assert "cannot be walked with 0 workers" in capsys.readouterr().err
