"""A training step taken from what `headrace watch` saw: the real command, and reports that say nothing of a step."""

import dataclasses
import json
import subprocess
import sys

import pytest

from headrace.doctor.timing.consumer import Emulated, chosen
from headrace.doctor.timing.watched import watched_step
from headrace.errors import ConfigurationError

SCRIPT = """
import time
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.zeros(400, 2))
for (batch,) in DataLoader(data, batch_size=4):
    time.sleep(0.03)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    (folder / "script.py").write_text(SCRIPT)
    words = ["watch", "--exit-zero", "--format", "json", "--output", "watched.json", "script.py"]
    subprocess.run([sys.executable, "-m", "headrace", *words], cwd=folder, check=True)
    return folder / "watched.json"


def test_the_step_of_a_watched_script_is_emulated(report):
    with chosen(watched=str(report), is_busy=False) as consumer:
        assert isinstance(consumer, Emulated)
        assert consumer.script == "script.py"
        assert consumer.step_s >= 0.03  # a sleep never ends early
        assert consumer.name == f"{1e3 * consumer.step_s:.3g} ms a step as watched in script.py, asleep (emulated)"


def told(report, **changes):
    data = json.loads(report.read_bytes())
    data["target"] |= changes
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lambda report: "nothing", "this is not a headrace report"),
        (lambda report: "{}", "this is not a headrace report"),
        (lambda report: told(report, watch=None), "watched no script"),
        (lambda report: told(report, watch={"num_loaders": 1, "num_steps": 0, "loop": None}), "no loop over a loader"),
        (
            lambda report: told(report, watch={"loop": {"is_long_enough": False, "num_batches": 3, "loop_s": 0.5}}),
            "only 3 steps were seen in 0.5 s",
        ),
    ],
)
def test_what_says_nothing_of_a_step_is_refused(report, tmp_path, text, said):
    (tmp_path / "other.json").write_text(text(report))
    with pytest.raises(ConfigurationError) as caught:
        watched_step(f"{tmp_path}/other.json")
    assert said in str(caught.value)
    assert f"{tmp_path}/other.json" in str(caught.value)


def test_a_report_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        watched_step(f"{tmp_path}/none.json")


@pytest.mark.parametrize("ways", [{"train": "a.py:step", "step_ms": 3.0}, {"given": len, "watched": "w.json"}])
def test_one_step_at_a_time(ways):
    with pytest.raises(ConfigurationError, match="exclude each other"), chosen(**ways):
        pass


def test_an_emulated_step_says_what_it_is():
    step = Emulated(step_s=0.0042371, script="train.py")
    assert step.name == "4.24 ms a step as watched in train.py, busy (emulated)"
    assert dataclasses.replace(step, script="").name == "4.2371 ms a step, busy (emulated)"
