"""The quick part of the exam: truth.toml says something about each case, and each case is a loop that runs.

`make bottlenecks` asks `headrace measure` about all of them; it takes the better part of an hour.
"""

import ast
import pathlib
import subprocess
import sys
import typing

import pytest

from headrace.doctor.measuring.model import Cause

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from truth import CASES, cases  # noqa: E402

import run as exam  # noqa: E402

ALL = cases()
IDS = [case.name for case in ALL]
KNOWN = set(typing.get_args(Cause))


def test_every_file_has_a_truth_and_every_truth_a_file():
    assert sorted(case.file for case in ALL) == sorted(path.name for path in CASES.glob("*.py"))


def test_there_are_enough_of_each():
    assert sum(case.verdict == "limited" for case in ALL) >= 18
    assert sum(case.verdict == "healthy" for case in ALL) >= 8


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_a_truth_uses_the_words_of_the_model(case):
    assert case.verdict in {"healthy", "limited"}
    assert case.cause
    assert {*case.cause, *case.also} <= KNOWN
    assert (case.verdict == "healthy") == (case.cause == ("compute",))
    assert case.because


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_the_suspect_can_be_taken_away(case):
    assert bool(case.without) == (case.verdict == "limited")
    ast.parse(case.text_without)


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_a_case_does_not_say_what_it_is(case):
    words = {
        "bottleneck",
        "slow ",
        "starv",
        "limited",
        "healthy",
        "headrace",
        *(KNOWN - {"read", "transform", "sample"}),
    }
    words -= {"compute", "decode", "memory", "lock", "collate"}  # what people say of their data, devices and functions
    text = case.text.replace("import headrace as hr\n", "").lower()  # whose loader some use
    assert [word for word in words if word in text] == []


DELIVER = """
import importlib, sys, tempfile
folder, name, train, tempfile.tempdir = sys.argv[1:]
sys.path.insert(0, folder)
if __name__ == "__main__":
    module = importlib.import_module(name)
    step = module.make_step() if train == "make_step" else getattr(module, train)
    step(next(iter(module.make_loader())))
    print("delivered", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_a_case_delivers_a_batch_and_trains_on_it(case, tmp_path):
    if (reason := case.missing()) is not None:
        pytest.skip(reason)
    # A process of its own: forks of one in which torch has computed with several threads can hang.
    script = tmp_path / "deliver.py"
    script.write_text(DELIVER)
    typed = [sys.executable, "-B", str(script), str(CASES), case.name, case.train, str(tmp_path)]
    done = subprocess.run(typed, capture_output=True, text=True, timeout=100)
    # Not the exit status: a thread that still prepares batches can upset how the interpreter ends.
    assert done.stdout.endswith("delivered\n"), done.stderr


def report(verdict, *causes):
    rows = [{"cause": cause} for cause in causes]
    return {"conclusion": {"verdict": verdict, "causes": rows, "sentence": "", "settling": ""}}


def outcome(case, verdict, *causes):
    return exam.read(case, report(verdict, *causes), 1.0)


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_the_truth_is_right_and_its_opposite_is_not(case):
    other = "healthy" if case.verdict == "limited" else "limited"
    assert outcome(case, case.verdict, *case.cause, *case.also).is_right
    assert outcome(case, case.verdict, *case.cause, *case.also).beside == ()
    assert not outcome(case, other, *case.cause).is_right
    assert outcome(case, other, *case.cause).is_false_alarm == (case.verdict == "healthy")
    assert outcome(case, "inconclusive").is_right == case.may_be_inconclusive


def test_of_a_limited_loop_the_first_cause_counts():
    case = next(case for case in ALL if case.name == "satellite_tiles")
    assert not outcome(case, "limited", "collate", "read").is_right
    assert outcome(case, "limited", "read", "collate").beside == ("collate",)
    assert not outcome(case, "limited").is_right


def test_one_false_alarm_fails_the_exam_and_one_miss_in_twenty_does_not():
    limited = [case for case in ALL if case.verdict == "limited"][:20]
    healthy = next(case for case in ALL if case.verdict == "healthy")
    right = [outcome(case, "limited", case.cause[0]) for case in limited]
    assert exam.passes(right)
    assert exam.passes([*right[1:], outcome(limited[0], "healthy")])
    assert not exam.passes([*right[2:], outcome(limited[0], "healthy"), outcome(limited[1], "healthy")])
    assert not exam.passes([*right, outcome(healthy, "limited", "read")])
