"""Progress: a bar on a terminal, a line now and then elsewhere."""

import io
import sys

import pytest

from headrace.errors import MissingExtra
from headrace.loop.trackers import Progress, RunInfo


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def begun(tmp_path, file, resumed_at=None, **more):
    progress = Progress(file=file, **more)
    progress.start(RunInfo(name="digits", folder=tmp_path, resumed_at=resumed_at))
    return progress


def test_without_a_terminal_it_prints_one_plain_line_per_30_seconds(tmp_path):
    file, clock = io.StringIO(), Clock()
    progress = begun(tmp_path, file, total=2000, clock=clock)
    for step in range(1, 1001):
        progress.log({"loss": 1 / step, "wait %": 3.25, "samples/s": 1024}, step)
        clock.now += 0.125
    progress.log({"val": 0.5}, 1000)
    progress.finish("finished")
    assert file.getvalue().splitlines() == [
        "digits: step 1 of 2,000 (0%) | loss 1, wait % 3.25, samples/s 1,024",
        "digits: step 241 of 2,000 (12%) | loss 0.004149, wait % 3.25, samples/s 1,024",
        "digits: step 481 of 2,000 (24%) | loss 0.002079, wait % 3.25, samples/s 1,024",
        "digits: step 721 of 2,000 (36%) | loss 0.001387, wait % 3.25, samples/s 1,024",
        "digits: step 961 of 2,000 (48%) | loss 0.001041, wait % 3.25, samples/s 1,024",
        "digits: finished: step 1,000 of 2,000 (50%) | loss 0.001, wait % 3.25, samples/s 1,024, val 0.5",
    ]


def test_a_run_that_goes_on_says_so(tmp_path):
    file = io.StringIO()
    progress = begun(tmp_path, file, resumed_at=40)
    progress.finish("failed")
    assert file.getvalue() == "digits: goes on behind step 40\ndigits: failed: step 40\n"


def test_on_a_terminal_it_is_a_bar_that_begins_where_the_run_goes_on(tmp_path):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    file = Terminal()
    progress = begun(tmp_path, file, resumed_at=40, total=100)
    progress.log({"loss": 0.25, "wait %": 3.0}, 41)
    progress.log({"val": 2}, 41)
    progress.log({"loss": 0.125}, 60)
    progress.finish("finished")
    last = file.getvalue().split("\r")[-1]
    assert last.startswith("digits:  60%|")
    assert "60/100" in last
    assert last.rstrip().endswith("loss 0.125, wait % 3, val 2]")


@pytest.mark.parametrize("columns", [70, 90, 120, 200])
def test_on_a_terminal_values_are_shown_whole_and_leave_room_for_the_bar(tmp_path, monkeypatch, columns):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda _: (columns, 30))
    file = Terminal()
    progress = begun(tmp_path, file, total=100)
    told = {"lr": 0.01, "epoch": 2, "loss": 0.25, "loss of the head": 0.6957, "accuracy": 0.5, "wait_share": 0.1}
    progress._bar.start_t -= 100
    progress.log(told, 30)
    progress.finish("finished")
    last = file.getvalue().split("\r")[-1].rstrip()

    assert len(last) <= columns
    assert len(last.split("|")[1]) >= 10, last
    shown = last.rstrip("] ").split(", ")[2:]  # behind times and rate
    whole = "loss 0.25, loss of the head 0.6957, accuracy 0.5, lr 0.01, epoch 2, wait_share 0.1".split(", ")
    assert shown == whole[: len(shown)]
    assert len(shown) == {70: 0, 90: 1, 120: 3, 200: 6}[columns]


def test_on_a_terminal_each_evaluation_stays_as_a_line_of_its_own(tmp_path):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    file = Terminal()
    progress = begun(tmp_path, file, total=100)
    for step in (10, 20):
        progress.log({"loss": 0.25}, step - 1)
        progress.log({"evaluation/loss": 1 / step, "evaluation/right": 0.5}, step)
    progress.finish("finished")

    lines = [line.split("\r")[-1] for line in file.getvalue().split("\n") if line]
    assert lines[0] == "digits: step 10 | evaluation/loss 0.1, evaluation/right 0.5"
    assert lines[1] == "digits: step 20 | evaluation/loss 0.05, evaluation/right 0.5"
    assert lines[2].startswith("digits:  20%|")
    assert lines[2].rstrip().endswith("loss 0.25]")  # blanks cover what was longer
    assert len(lines) == 3


def test_the_run_says_how_many_steps_it_has(tmp_path):
    for given, shown in ((None, "step 5 of 20 (25%)"), (10, "step 5 of 10 (50%)")):
        file = io.StringIO()
        progress = Progress(given, file=file)
        progress.start(RunInfo(name="digits", folder=tmp_path, num_steps=20))
        progress.log({}, 5)
        assert file.getvalue() == f"digits: {shown}\n"


def test_a_terminal_without_tqdm_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtra, match=r"^a progress bar on a terminal needs tqdm"):
        Progress(file=Terminal())
    Progress(file=io.StringIO())  # plain lines need nothing


def test_it_writes_to_stderr_as_it_is_when_it_writes(tmp_path, capsys):
    progress = begun(tmp_path, None)
    progress.log({"loss": 1.0}, 1)
    assert capsys.readouterr().err == "digits: step 1 | loss 1\n"
