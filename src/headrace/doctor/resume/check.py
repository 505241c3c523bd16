"""`headrace diagnose --resume`: does this training function go on as if it had never been interrupted?"""

from __future__ import annotations

import datetime as dt
import pathlib
import tempfile
from collections.abc import Callable

from headrace import __version__
from headrace.doctor.diagnose import Options
from headrace.doctor.evidence.resume import ResumeRuns
from headrace.doctor.gathering import Gathering
from headrace.doctor.judging import judge
from headrace.doctor.lab.outside import Budget
from headrace.doctor.report.environment import describe_environment
from headrace.doctor.report.model import Report
from headrace.doctor.resume.running import Runner
from headrace.doctor.resume.trials import Trials, run_trials
from headrace.doctor.rule import Rule
from headrace.doctor.subject.target import check_spec

__all__ = ["check_resume"]


def check_resume(
    spec: str, options: Options | None = None, *, command: str = "", progress: Callable[[str], None] | None = None
) -> Report:
    """Runs a training function some twelve times, interrupted and not, and returns what differs.

    Args:
        spec: TARGET, e.g. `train.py:train`: a function that takes a folder (and a number of steps at which it stops, and
            a number of workers, if it likes), goes on from what lies in the folder, and saves there.
        options: Budget and rules; the rest has no meaning here.
        command: What was typed, for the report.
        progress: Told, in a few words, what is being done.

    Raises:
        TargetError: there is no such function, it cannot be called, or it fails without any interruption.
        ConfigurationError: no rule has a selected code.

    Nothing that was started is left afterwards, and what the runs saved is deleted.
    """
    options = options or Options()
    check_spec(spec)
    rules = _rules(options)
    created = dt.datetime.now(dt.UTC).astimezone().isoformat(timespec="seconds")
    with (
        tempfile.TemporaryDirectory(prefix="headrace-") as folder,
        Runner(pathlib.Path(folder), Budget(options.budget_s)) as runner,
    ):
        done = run_trials(spec, runner, progress or (lambda _: None))
    gathered = Gathering(runs=done.runs)
    if done.evidence is None:
        gathered.lacks([ResumeRuns], done.missing)
    elif not done.evidence.trials:
        gathered.lacks([ResumeRuns], "no interrupted run had saved anything that one could go on from")
    else:
        gathered.add(done.evidence)
    findings, skipped, cleared = judge(rules, gathered.evidence, gathered.missing)
    return Report(
        tool=f"headrace {__version__}",
        created=created,
        command=command,
        environment=describe_environment(),
        target=_describe(spec, done),
        findings=findings,
        runs=done.runs,
        stages=[],
        skipped=skipped,
        cleared=cleared,
        verdict="findings" if findings else "clean" if cleared else "inconclusive",
        is_conclusive=bool(cleared),
    )


def _rules(options: Options) -> tuple[Rule, ...]:
    """The selected rules that judge resuming."""
    from headrace.doctor.catalogue import rules

    return tuple(rule for rule in rules(options.select, options.ignore) if rule.needs == (ResumeRuns,))


def _describe(spec: str, done: Trials) -> dict[str, object]:
    described: dict[str, object] = {"spec": spec, "kind": "training function"}
    if done.evidence is not None:
        described |= {
            "num_steps": done.evidence.num_steps,
            "steps_per_epoch": done.evidence.steps_per_epoch,
            "repeatable": done.evidence.repeatable,
            "resumed": [one.kind for one in done.evidence.trials],
        }
    return described
