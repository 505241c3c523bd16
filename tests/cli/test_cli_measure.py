"""`headrace measure`: usage, exit status, JSON."""

import json

import pytest

from headrace.cli import main

FILE = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 500
    def __getitem__(self, row):
        time.sleep(0.005)
        return torch.zeros(4), row

def make(): return DataLoader(Slow(), batch_size=4)
def step(batch): pass
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--train", "a.py:step", "--step-ms", "5"], "exclude each other"),
        (["--asleep"], "--step-ms"),
        (["--step-ms", "0"], "more than 0"),
        (["--budget", "soon"], "no duration"),
        (["--budget", "1s"], "at least 5 s"),
        (["--output", "/no/such/folder/report.json"], "no folder"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(words, said, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["measure", "nowhere.py:loader", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_record_as_json_and_the_exit_status(tmp_path, capsys):
    (tmp_path / "slow.py").write_text(FILE)
    words = [f"{tmp_path}/slow.py:make", "--train", f"{tmp_path}/slow.py:step", "--budget", "18s", "--format", "json"]
    assert main(["measure", *words]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    assert told["conclusion"]["verdict"] == "limited"
    assert told["consumer"].endswith("slow.py:step")
    assert {run["arm"] for run in told["runs"]} >= {"I", "C", "plain workers=0"}
