"""`diagnose` hands the doctor's report on: the same in text and JSON, to a screen or a file, with its exit status."""

import json

import pytest

from headrace.cli import main

TRAIN = """
import time
import torch
from torch.utils.data import DataLoader

images = [torch.zeros(3, 4, 4) for _ in range(11)]
images[7] = torch.zeros(1, 4, 4)
loader = DataLoader(images, batch_size=4)
sound = DataLoader(images[:7], batch_size=4)

class Stuck(list):
    def __getitem__(self, index):
        while index == 2:
            time.sleep(1)
        return super().__getitem__(index)

stuck = DataLoader(Stuck(images[:4]), batch_size=2)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def train_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)


def report_of(capsys, *words):
    status = main(["diagnose", *words, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_odd_sample_is_named_in_text_within_80_columns(capsys):
    assert main(["diagnose", "train.py:loader"]) == 1
    out, err = capsys.readouterr()
    assert "HR301 shape-mismatch" in out
    assert "sample 7" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert err == ""


def test_the_json_has_the_exit_status_in_it(capsys):
    status, report = report_of(capsys, "train.py:loader")
    assert status == 1
    assert [(row["code"], row["sample_ids"]) for row in report["findings"]] == [("HR301", [7])]
    assert report["target"]["spec"] == "train.py:loader"


def test_a_sound_loader_is_clean(capsys):
    status, report = report_of(capsys, "train.py:sound")
    assert (status, report["findings"], report["verdict"]) == (0, [], "clean")


def test_a_report_can_go_to_a_file(capsys, tmp_path):
    assert main(["diagnose", "train.py:loader", "--format", "json", "--output", "report.json"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "headrace: wrote report.json\n")
    assert json.loads((tmp_path / "report.json").read_text())["findings"]


def test_rules_can_be_left_out(capsys):
    status, report = report_of(capsys, "train.py:loader", "--ignore", "HR301")
    assert status == 0
    assert "HR301" not in [*report["cleared"], *(row["code"] for row in report["skipped"])]


def test_a_stuck_sample_is_a_finding_and_not_the_end(capsys):
    status, report = report_of(capsys, "train.py:stuck", "--per-sample", "2s")
    assert status == 1
    assert ("HR109", [2]) in [(row["code"], row["sample_ids"]) for row in report["findings"]]


def test_a_misspelt_code_names_the_nearest(capsys):
    assert main(["diagnose", "train.py:loader", "--select", "HR991"]) == 2
    assert "did you mean" in capsys.readouterr().err
