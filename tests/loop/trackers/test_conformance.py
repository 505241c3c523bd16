"""What every tracker must do: a history with neither gaps nor repeats, however often the run is killed and goes on."""

import importlib.util
import json
import math
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from headrace.errors import ConfigurationError
from headrace.loop.trackers import RunInfo, Tracker

HERE = pathlib.Path(__file__).parent


def _load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


histories = _load("histories")
foreign = pytest.mark.filterwarnings("ignore")  # what these libraries warn of is theirs


@pytest.fixture(params=histories.KEPT, ids=str)
def kept(request, monkeypatch, tmp_path):
    request.param.skip_if_missing()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CONSOLE", "off")  # it wraps streams that pytest takes away
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    yield request.param
    if request.param.needs == "wandb":
        import wandb

        wandb.teardown()  # its service is a process


def run_info(folder, resumed_at=None, **more):
    config = {"optimizer": {"name": "adam", "lr": 0.1}, "sizes": [1, 2]}
    return RunInfo(name="digits", folder=folder, config=config, resumed_at=resumed_at, **more)


def log(tracker, steps, names=("loss", "acc/top 1")):
    for step in steps:
        tracker.log({name: histories.value(name, step) for name in names}, step)


def assert_each_once(kept, folder, last, names=("loss", "acc/top 1")):
    found = kept.read(folder)
    for name in names:
        assert found[name] == [(step, histories.value(name, step)) for step in range(1, last + 1)], name


@foreign
def test_a_run_that_is_never_killed_is_kept_whole(kept, tmp_path):
    tracker: Tracker = kept.make()
    assert tracker.name == kept.name
    tracker.start(run_info(tmp_path))
    log(tracker, range(1, 6))
    tracker.finish("finished")
    assert_each_once(kept, tmp_path, 5)


@foreign
@pytest.mark.slow
def test_killed_twice_and_gone_on_it_has_each_step_once(kept, tmp_path):
    first = kept.make()
    first.start(run_info(tmp_path))
    log(first, range(1, 5))
    state = json.loads(json.dumps(first.state_dict()))  # plain values: it rides in a checkpoint
    log(first, range(5, 8))  # the checkpoint does not have these

    second = kept.make()
    second.load_state_dict(state)
    second.start(run_info(tmp_path, resumed_at=4))
    log(second, range(5, 7))  # killed before it was as far as the first one

    third = kept.make()
    third.load_state_dict(state)
    third.start(run_info(tmp_path, resumed_at=4))
    log(third, range(5, 10))
    assert third.state_dict() == state
    third.finish("finished")
    assert_each_once(kept, tmp_path, 9)
    assert len(kept.identity(tmp_path)) == 1


@foreign
@pytest.mark.slow
def test_values_logged_again_of_the_step_of_the_checkpoint_stand_there_once(kept, tmp_path):
    first = kept.make()
    first.start(run_info(tmp_path))
    log(first, range(1, 4))
    state = first.state_dict()
    second = kept.make()
    second.load_state_dict(state)
    second.start(run_info(tmp_path, resumed_at=3))
    log(second, [3])  # an evaluation at the end of an epoch is done again
    second.log({"val": 0.25}, 3)  # and one of its values was not logged before
    log(second, [4])
    second.finish("finished")
    assert_each_once(kept, tmp_path, 4)
    assert kept.read(tmp_path)["val"] == [(3, 0.25)]


@foreign
@pytest.mark.slow
@pytest.mark.parametrize("kept", histories.KEPT, ids=str)
def test_sigkill_between_two_steps_loses_nothing_that_a_checkpoint_holds(kept, tmp_path):
    kept.skip_if_missing()
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    environment.pop("MLFLOW_TRACKING_URI", None)

    def run(*arguments):
        command = [sys.executable, str(HERE / "killed_run.py"), kept.name, str(tmp_path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
        return done.returncode, done.stderr

    assert run("none", "7", "die")[0] == -signal.SIGKILL
    assert run("4", "6", "die")[0] == -signal.SIGKILL
    status, complaint = run("4", "9", "finish")
    assert status == 0, complaint
    assert_each_once(kept, tmp_path, 9, names=("loss",))
    assert len(kept.identity(tmp_path)) == 1


@foreign
@pytest.mark.slow
def test_what_was_logged_before_the_checkpoint_can_be_read_once_it_has_the_state(kept, tmp_path):
    if kept.name == "wandb":
        pytest.skip(
            "its own process writes when it likes; the history of its own that the tracker keeps makes up for it"
        )
    tracker = kept.make()
    tracker.start(run_info(tmp_path))
    log(tracker, range(1, 201), names=("wait percent",))
    tracker.state_dict()
    assert [step for step, _ in kept.read(tmp_path)["wait percent"]] == list(range(1, 201))


@foreign
def test_values_may_be_tensors_arrays_integers_and_no_numbers_at_all(kept, tmp_path):
    tracker = kept.make()
    tracker.start(run_info(tmp_path))
    tracker.log({"a": torch.tensor(0.5), "b": np.float32(0.25), "c": 7, "d": torch.tensor([3]), "e": np.int64(2)}, 1)
    tracker.log({"nan": math.nan}, 2)
    with pytest.raises(ConfigurationError, match=r"^value 'image' is no number, but Tensor of shape \(2, 2\)"):
        tracker.log({"image": torch.ones(2, 2)}, 3)
    with pytest.raises(ConfigurationError, match=r"^no value can be named 'step'"):
        tracker.log({"step": 3}, 3)
    tracker.finish("failed")
    found = kept.read(tmp_path)
    assert {name: found[name] for name in "abcde"} == {
        "a": [(1, 0.5)],
        "b": [(1, 0.25)],
        "c": [(1, 7.0)],
        "d": [(1, 3.0)],
        "e": [(1, 2.0)],
    }
    ((step, value),) = found["nan"]
    assert step == 2
    assert math.isnan(value)


VERDICT = {
    "headline": "train.py:make_loader: 1 error and 1 remark; begin with HR206 constant-worker-seed",
    "verdict": "findings",
    "counts": {"error": 1, "warning": 0, "info": 1},
    "rules": ["HR206", "HR610"],
    "tool": "headrace 0.1.0",
    "created": "2026-07-01T12:00:00+02:00",
    "report": "/runs/report.json",
}


@foreign
def test_the_doctors_verdict_stands_in_the_history_of_a_run_and_of_one_that_goes_on(kept, tmp_path):
    first = kept.make()
    first.start(run_info(tmp_path, facts={"parameters": 7, "diagnosis": VERDICT}))
    log(first, [1])
    state = first.state_dict()
    first.finish("killed")
    expected = {
        "diagnosis.headline": VERDICT["headline"],
        "diagnosis.verdict": "findings",
        "diagnosis.counts.error": "1",
        "diagnosis.counts.warning": "0",
        "diagnosis.counts.info": "1",
        "diagnosis.rules": "['HR206', 'HR610']",
        "diagnosis.tool": "headrace 0.1.0",
        "diagnosis.created": "2026-07-01T12:00:00+02:00",
        "diagnosis.report": "/runs/report.json",
        "parameters": "7",
    }
    assert kept.facts(tmp_path).items() >= expected.items()

    second = kept.make()
    second.load_state_dict(state)
    mended = {**VERDICT, "headline": "clean", "counts": {"error": 0, "warning": 0, "info": 0}, "rules": []}
    second.start(run_info(tmp_path, facts={"parameters": 7, "diagnosis": mended}, resumed_at=1))
    log(second, [2])
    second.finish("finished")
    told = kept.facts(tmp_path)
    assert (told["diagnosis.headline"], told["diagnosis.counts.error"], told["diagnosis.rules"]) == ("clean", "0", "[]")
    assert_each_once(kept, tmp_path, 2)


@foreign
def test_a_file_is_taken_under_its_name(kept, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "x.txt").write_text("one", encoding="utf-8")
    tracker = kept.make()
    tracker.start(run_info(tmp_path))
    tracker.log({"loss": 1.0}, 1)
    tracker.artifact(tmp_path / "made" / "x.txt", "pictures/curve.txt")
    tracker.finish("finished")
    assert kept.read(tmp_path)["loss"] == [(1, 1.0)]
    if kept.name in {"jsonl", "mlflow"}:
        (copy,) = [path for path in tmp_path.rglob("curve.txt") if path.parent.name == "pictures"]
        assert copy.read_text(encoding="utf-8") == "one"


@foreign
@pytest.mark.parametrize("call", ["log", "artifact", "finish"])
def test_what_was_not_started_says_so(kept, call, tmp_path):
    arguments = {"log": ({"loss": 1.0}, 1), "artifact": (tmp_path, "x"), "finish": ("finished",)}
    with pytest.raises(ConfigurationError, match=r"^the tracker was not started"):
        getattr(kept.make(), call)(*arguments[call])


@foreign
def test_a_folder_that_cannot_be_written_is_an_error_of_start(kept, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(Exception, match=r"."):
        kept.make().start(run_info(tmp_path / "file" / "run"))


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_library_that_is_missing_is_named_when_the_tracker_is_made(name, monkeypatch):
    from headrace.errors import MissingExtra
    from headrace.loop import track

    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"needs {name}\n  do:    pip install 'headrace\[track\]'"):
        getattr(track, name)(*(["p"] if name == "wandb" else []))
