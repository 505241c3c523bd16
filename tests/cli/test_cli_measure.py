"""`headrace measure`: usage, exit status, JSON."""

import json

import pytest

from headrace.cli import main
from headrace.doctor.measuring.json import to_json
from headrace.doctor.measuring.made_up import World

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


@pytest.mark.parametrize("command", ["measure", "tune"])
def test_a_step_that_is_not_there_is_said_before_anything_is_measured(tmp_path, capsys, command):
    (tmp_path / "slow.py").write_text(FILE)
    assert main([command, f"{tmp_path}/slow.py:make", "--train", f"{tmp_path}/slow.py:steps", "--budget", "30s"]) == 2
    (line, *more) = [line for line in capsys.readouterr().err.splitlines() if "steps" in line or "do:" in line]
    assert line.endswith("slow.py has no steps; did you mean 'step'?")
    assert "def train_step(batch)" in more[-1]


def test_the_record_as_json_and_the_exit_status(tmp_path, capsys):
    (tmp_path / "slow.py").write_text(FILE)
    words = [f"{tmp_path}/slow.py:make", "--train", f"{tmp_path}/slow.py:step", "--budget", "18s", "--format", "json"]
    assert main(["measure", *words]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    assert told["conclusion"]["verdict"] == "limited"
    assert told["consumer"].endswith("slow.py:step")
    assert {run["arm"] for run in told["runs"]} >= {"I", "C", "plain workers=0"}


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    path = tmp_path_factory.mktemp("then") / "then.json"
    path.write_text(to_json(World(wall_ms={"decode": 1}).measured()))
    return path


@pytest.mark.parametrize(
    ("decode_ms", "outcome", "said", "status"),
    [(12, "worse", "worse than", 1), (1, "same", "the same as", 0)],
    ids=["worse", "same"],
)
def test_held_against_an_earlier_report_only_worse_fails(
    decode_ms, outcome, said, status, baseline, capsys, monkeypatch
):
    now = World(wall_ms={"decode": decode_ms}, noise=0.001).measured(seed=1)
    monkeypatch.setattr("headrace.doctor.measuring.measure.measure", lambda *_, **__: now)
    assert main(["measure", "train.py:make", "--step-ms", "20", "--baseline", str(baseline)]) == status
    assert f"AGAINST  {said} the report of" in capsys.readouterr().out
    words = ["--baseline", str(baseline), "--format", "json"]
    assert main(["measure", "train.py:make", "--step-ms", "20", *words]) == status
    told = json.loads(capsys.readouterr().out)
    assert (told["against"]["outcome"], told["exit_status"]) == (outcome, status)


def test_what_cannot_be_compared_is_not_told(baseline, monkeypatch, capsys):
    now = World(wall_ms={"decode": 1}, batch_size=16).measured()
    monkeypatch.setattr("headrace.doctor.measuring.measure.measure", lambda *_, **__: now)
    assert main(["measure", "train.py:make", "--step-ms", "20", "--baseline", str(baseline)]) == 3
    assert "batch size: 8 then, 16 now" in capsys.readouterr().out


def test_a_baseline_that_is_none_is_refused_before_anything_runs(tmp_path, capsys):
    (tmp_path / "none.json").write_text("{}")
    assert main(["measure", "nowhere.py:loader", "--baseline", str(tmp_path / "none.json")]) == 2
    assert "no report of headrace measure" in capsys.readouterr().err


def test_the_page_lies_where_it_was_asked_for(tmp_path, monkeypatch):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    now = World(wall_ms={"decode": 12}).measured()
    monkeypatch.setattr("headrace.doctor.measuring.measure.measure", lambda *_, **__: now)
    assert main(["measure", "train.py:make", "--step-ms", "20", "--html", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert now.conclusion.sentence in page
    assert now.conclusion.sentence in now._repr_html_()
