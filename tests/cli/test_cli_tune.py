"""`headrace tune`: usage, exit status, JSON."""

import json

import pytest

from headrace.cli import main

FILE = """
from torch.utils.data import DataLoader

def make():
    return DataLoader([[float(number), 1] for number in range(512)], batch_size=4)
"""


@pytest.fixture
def target(tmp_path):
    (tmp_path / "lists.py").write_text(FILE)
    return f"{tmp_path}/lists.py:make"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--need", "fast"], "write 800/s"),
        (["--need", "0/s"], "write 800/s"),
        (["--margin", "much"], "write 25%"),
        (["--memory", "4 apples"], "write 4GiB"),
        (["--yes"], "--apply"),
        (["--apply"], "--apply --yes"),
        (["--step-ms", "5", "--train", "a.py:b"], "not both"),
        (["--step-ms", "0"], "must be above 0"),
        (["--workers-max=-1"], "workers-max"),
        (["--train", "nonsense"], "':'"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(words, said, capsys, monkeypatch, target):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["tune", target, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_loader_that_is_enough_is_kept(target, capsys):
    assert main(["tune", target, "--need", "10/s", "--budget", "60s", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "keep"
    assert told["summary"] == "keep what you have: it meets the need"
    assert told["tried"][0]["supply_per_s"] > 10
    assert told["need"]["rate_per_s"] == 10


@pytest.mark.slow
def test_a_budget_that_is_too_short_is_inconclusive(target, capsys):
    assert main(["tune", target, "--budget", "15s"]) == 3
    assert capsys.readouterr().out.startswith("VERDICT  inconclusive: the budget of 15 s is too short")
