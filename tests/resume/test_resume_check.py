"""Training functions that go on exactly get silence; each fault gets its rule, with what differs first."""

from __future__ import annotations

import threading

import psutil
import pytest

from headrace.doctor import catalogue
from headrace.doctor.diagnose import Options
from headrace.doctor.evidence.resume import ResumeRuns
from headrace.doctor.lab.outside import Budget
from headrace.doctor.resume.check import check_resume
from headrace.doctor.resume.running import Runner
from headrace.doctor.resume.trials import run_trials
from headrace.errors import TargetError

from . import scripts

ALL = ["stopped", "resumed-twice", "stopped-at-epoch-end", "killed"]


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    with Runner(tmp_path_factory.mktemp("runs"), Budget(600.0)) as found:
        yield found


@pytest.fixture
def tried(runner, tmp_path):
    """Tries a script; returns its evidence and what the three rules say."""

    def run(name):
        path = tmp_path / f"{name.lower()}.py"
        path.write_text(getattr(scripts, name))
        done = run_trials(f"{path}:train", runner, lambda _: None)
        assert done.evidence is not None, done.missing
        rules = [rule for rule in catalogue.rules(["HR9"]) if rule.needs == (ResumeRuns,)]
        return done.evidence, {rule.code: one for rule in rules for one in rule.judge(done.evidence)}

    return run


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("EXACT", [*ALL, "other-workers", "other-workers"]),
        ("HEADRACE", [*ALL, "other-workers", "other-workers"]),
        ("EPOCHS_ONLY", ALL),
        ("ONE_PARAMETER", ["killed"]),
    ],
)
def test_a_function_that_goes_on_exactly_gets_silence(tried, name, kinds):
    seen, found = tried(name)
    assert [trial.kind for trial in seen.trials] == kinds
    assert {trial.differs for trial in seen.trials} == {"nothing"}
    assert seen.ids_known
    assert seen.repeatable == "losses"
    assert found == {}


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("NO_OPTIMIZER", "HR907", "stopped at step 15 and resumed, the run has another loss at step 16"),
        ("NO_RANDOM_STATE", "HR907", "another loss at step 15"),
        ("RESTARTS_EPOCH", "HR907", "20 samples of that epoch came again"),
        ("WRONG_ORDER", "HR909", "skips the right number of batches, but of another order"),
        ("IGNORES_CHECKPOINT", "HR907", "began with step 0 again"),
        ("REPLAYS_FIRST_ORDER", "HR907", "it took the order of epoch 0"),
        ("BROKEN_LOAD", "HR907", "fails: KeyError: 'steps'"),
        ("NEEDS_SAME_WORKERS", "HR908", "with its own number of workers it goes on exactly"),
        ("STREAM_RESTARTS", "HR907", "batch of samples"),
        ("SECOND_IS_WRONG", "HR907", "resumed a second time"),
        ("UNREPEATABLE_LOSS", None, ""),
        ("UNSEEDED", "HR909", "of another order"),
    ],
)
def test_each_fault_gets_its_rule(tried, name, code, text):
    seen, found = tried(name)
    assert list(found) == ([] if code is None else [code]), seen
    if code is not None:
        assert text in found[code].message
        assert found[code].where == seen.function
        assert found[code].basis == "experiment"


def test_a_script_that_is_not_repeatable_is_compared_by_its_samples(tried):
    assert tried("UNREPEATABLE_LOSS")[0].repeatable == "samples"
    assert tried("UNSEEDED")[0].repeatable == "nothing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def train(): pass", "takes no folder"),
        ("train = 3", "needs a function that trains"),
        ("def train(folder, model, optimizer): pass", "needs more than a folder and a number of steps: optimizer"),
        ("def train(folder, max_steps): raise ValueError('no data')", "failed by itself"),
        ("def train(folder, max_steps): pass", "took 0 optimizer steps"),
        ("import missing_module_xyz", "could not be imported"),
    ],
)
def test_a_function_that_cannot_be_tried_says_why(runner, tmp_path, text, message):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(TargetError, match=message):
        run_trials(f"{tmp_path}/bad.py:train", runner, lambda _: None)


def test_a_function_that_hangs_ends_with_the_budget_and_leaves_nothing(tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import multiprocessing, time\n"
        "def train(folder, max_steps):\n"
        "    child = multiprocessing.Process(target=time.sleep, args=(600,))\n"
        "    child.start()\n"
        f"    open({str(tmp_path / 'pids')!r}, 'w').write(str(child.pid))\n"
        "    time.sleep(600)\n"
    )
    budget = Budget(600.0)
    (tmp_path / "runs").mkdir()
    with Runner(tmp_path / "runs", budget) as runner:
        waiting = threading.Thread(target=_spend_once, args=(budget, tmp_path / "pids"))
        waiting.start()
        done = runner.run(f"{tmp_path}/hangs.py:train", tmp_path, max_steps=4)
        waiting.join()
    assert done.outcome == "over-budget"
    pid = int((tmp_path / "pids").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _spend_once(budget, path):
    """Ends the budget when the run is under way, however long that takes."""
    import time

    while not (path.exists() and path.read_text()):
        time.sleep(0.05)
    budget._end = 0.0


def test_the_command_makes_a_report(tmp_path):
    path = tmp_path / "restarts.py"
    path.write_text(scripts.RESTARTS_EPOCH)
    told = []
    report = check_resume(f"{path}:train", Options(budget_s=120), command="headrace diagnose", progress=told.append)
    assert [finding.code for finding in report.findings] == ["HR907"]
    assert report.cleared == ["HR908", "HR909"]
    assert report.exit_status == 1
    assert "a run that gets SIGKILL at step 15" in told
    assert report.target["steps_per_epoch"] == 10
