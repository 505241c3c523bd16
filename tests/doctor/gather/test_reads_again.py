"""Samples that failed are read again: always, by a draw, or now and then."""

import random

import pytest

from headrace.doctor.diagnose import Options, diagnose
from headrace.doctor.evidence import SampleRead
from headrace.doctor.evidence.workers import WorkerError
from headrace.doctor.experiments.chance import put_together

pytestmark = pytest.mark.slow  # starts interpreters

DATA = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.seen = set()
    def __len__(self):
        return 30
    def lapse(self, index):
        self.seen.add(index)
        raise OSError('late')
    def __getitem__(self, index):
        self.look(index)
        return torch.tensor([float(index)])
"""

FIRST = "index in self.seen or self.lapse(index)"

CASES = {
    "always": ("if index == 4: raise OSError('gone')", {"HR101": [4]}),
    "now and then": (f"if index % 10 == 4: {FIRST}", {"HR112": [4, 14, 24]}),
    "drawn": ("if index == 4 and random.random() < 0.5: raise OSError('too short')", {"HR112": [4]}),
    "both": (
        f"if index == 5: raise OSError('gone')\n        if index == 4: {FIRST}",
        {"HR101": [5], "HR112": [4]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_always_fails_and_what_does_not(tmp_path, name):
    look, expected = CASES[name]
    file = tmp_path / "train.py"
    file.write_text(f"{DATA}    def look(self, index):\n        {look}\n\nloader = DataLoader(Rows(), batch_size=5)\n")
    # The draw that fails must be the first one: a seed is looked for under which it is.
    seeds = range(20) if name == "drawn" else [0]
    for seed in seeds:
        report = diagnose(f"{file}:loader", Options(select=["HR101", "HR112"], seed=seed), command="")
        found = {row.code: row for row in report.findings}
        if found:
            break
    assert {code: row.sample_ids for code, row in found.items()} == expected
    assert name != "drawn" or "draws of a random step" in found["HR112"].message
    assert not [row for row in report.skipped if row.crashed]


def read(sample_id, **more):
    said = {"error_type": "OSError", "error_message": "late", "error_at": "a.py:3 in get", "num_again": 12}
    return SampleRead(
        index=sample_id, sample_id=sample_id, path=None, outcome="error", stage="read", **{**said, **more}
    )


def test_readings_of_one_place_are_added_up_and_what_always_fails_is_left_out():
    worker = WorkerError(
        error_type="OSError",
        message="late",
        stage="sample",
        sample_ids=(9,),
        at="a.py:3 in get",
        arrives_as="OSError",
        in_one_process="by chance",
        num_errors=5,
        num_single=40,
        num_single_failed=1,
    )
    reads = [
        read(1, num_again_failed=2),
        read(2, num_again_failed=12),
        read(3, num_again_failed=0),
        read(4, num_again_failed=1, error_at="a.py:9 in get"),
        read(5, num_again=0),
    ]
    random.Random(3).shuffle(reads)
    by_place = {one.at: one for one in put_together(reads, [worker])}
    one = by_place["a.py:3 in get"]
    assert (one.num_read, one.num_failed, one.num_worker_errors) == (13 + 13 + 40, 3 + 1 + 1, 5)
    assert sorted(one.sample_ids) == [1, 3, 9]
    assert by_place["a.py:9 in get"].sample_ids == (4,)
    assert len(by_place) == 2
