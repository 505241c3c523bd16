"""`examples/train_digits.py`, killed again and again: it ends with the parameters of a run that nobody killed.

HEADRACE_KILLS=10 pytest tests/examples/test_train_digits.py     kills it more often, at other steps each time
"""

import importlib.util
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]
KILLS = int(os.environ.get("HEADRACE_KILLS", "2"))
LAST = 141


def started(folder):
    return subprocess.Popen(
        [sys.executable, "examples/train_digits.py", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(folder):
    process = started(folder)
    out, err = process.communicate(timeout=110)
    assert process.returncode == 0, err
    return out.split(";")[1], err


def newest(folder):
    steps = [int(path.name.removeprefix("step-")) for path in (folder / "checkpoints").glob("step-*")]
    return max(steps, default=0)


def kill_behind(folder, step):
    """Starts the example, and kills it once it has saved that step, or a moment later."""
    process = started(folder)
    deadline = time.monotonic() + 110
    while newest(folder) < step and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(random.random() * 0.2)
    process.kill()
    process.communicate()
    return process.returncode


@pytest.mark.slow
@pytest.mark.timeout(100 + 60 * KILLS)
def test_killed_it_ends_with_the_same_parameters_and_a_whole_history(tmp_path):
    expected, _ = finished(tmp_path / "whole")
    places = sorted(random.sample(range(5, LAST - 10), KILLS)) if KILLS > 2 else [15, 60]
    killed = [kill_behind(tmp_path / "killed", step) for step in places]
    found, said = finished(tmp_path / "killed")

    assert killed.count(-signal.SIGKILL) >= KILLS - 1, "the last one may have come to its end before the kill"
    assert found == expected
    assert "BIT-EXACT" in said
    rows = [json.loads(line) for line in (tmp_path / "killed" / "history.jsonl").read_text().splitlines()]
    losses = [row["step"] for row in rows if "loss" in row]
    assert losses == list(range(10, LAST, 10))
    assert [row["step"] for row in rows if "evaluation/loss" in row] == [47, 94, 141]
    whole = [json.loads(line) for line in (tmp_path / "whole" / "history.jsonl").read_text().splitlines()]
    same = {(row["step"], row["loss"]) for row in whole if "loss" in row}
    assert {(row["step"], row["loss"]) for row in rows if "loss" in row} == same
    if importlib.util.find_spec("mlflow"):
        with sqlite3.connect(tmp_path / "killed" / "mlflow.db") as database:
            steps = [step for (step,) in database.execute("select step from metrics where key = 'loss' order by step")]
            assert steps == losses
            assert database.execute("select count(distinct run_uuid) from metrics").fetchone() == (1,)
