"""The short runs: a whole one, another whole one, and each way to interrupt one and to go on."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Literal

from headrace.doctor.evidence.resume import ResumeRuns, ResumeTrial
from headrace.doctor.report.model import RunRow
from headrace.doctor.resume.comparing import compare, compare_without_whole
from headrace.doctor.resume.running import Run, Runner
from headrace.doctor.resume.steps import Step, epoch_starts, is_same_loss
from headrace.errors import TargetError

__all__ = ["Trials", "run_trials"]

FIRST_STEPS = 24
"""Steps of the first run, which finds out how long an epoch is."""
MOST_STEPS = 96
"""Longest whole run: several epochs, if they are short; else a part of the first."""

Kind = Literal["stopped", "stopped-at-epoch-end", "killed", "terminated", "resumed-twice", "other-workers"]


@dataclasses.dataclass(slots=True)
class Trials:
    """What was run, and what came of it."""

    runs: list[RunRow] = dataclasses.field(default_factory=list)
    evidence: ResumeRuns | None = None
    missing: str = ""
    """Why there is no evidence."""


def run_trials(spec: str, runner: Runner, say: Callable[[str], None]) -> Trials:
    """Runs the training function some twelve times in folders of its own, as far as the runner's budget reaches.

    Raises:
        TargetError: there is no such function, it cannot be called, or it fails by itself, without any interruption.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-resume-") as folder:
        return _Trials(spec, pathlib.Path(folder), runner, say).run()


class _Trials:
    def __init__(self, spec: str, folder: pathlib.Path, runner: Runner, say: Callable[[str], None]) -> None:
        self._spec, self._folder, self._runner, self._say = spec, folder, runner, say
        self._done = Trials()
        self._num_folders = 0
        self._trials: list[ResumeTrial] = []
        self._whole: tuple[Step, ...] = ()
        self._repeatable: Literal["losses", "samples", "nothing"] = "losses"
        self._takes_steps = self._takes_workers = False

    def run(self) -> Trials:
        num_steps = self._measure()
        if not self._whole:
            return self._done
        again = self._run("the whole run again", self._new(), num_steps)
        if again.outcome == "over-budget":
            self._done.missing = (
                "the budget was spent before two whole runs were done: --budget 5m gives them more time"
            )
            return self._done
        self._repeatable = _repeatable(self._whole, again.steps)
        starts = [*epoch_starts(self._whole)[1:]]
        middle = self._middle(starts)
        stopped = self._new()
        first = self._interrupt(stopped, middle, "stop")
        if first is not None:
            self._judge("stopped", middle, first, self._copy(stopped))
        self._twice(stopped if first is not None else None, middle)
        if starts:
            at = starts[-1] if starts[-1] < len(self._whole) else starts[0]
            self._interrupted("stopped-at-epoch-end", at, "stop")
        self._interrupted("killed", middle, "SIGKILL")
        self._interrupted("terminated", middle, "SIGTERM")
        if first is not None and self._takes_workers:
            self._other_workers(stopped, middle)
        whole = self._whole
        self._done.evidence = ResumeRuns(
            function=self._spec,
            num_steps=len(whole),
            steps_per_epoch=starts[0] if starts else None,
            ids_known=any(step.ids for step in whole) and not any(step.by_content for step in whole),
            repeatable=self._repeatable,
            trials=tuple(self._trials),
        )
        return self._done

    # The whole run.

    def _measure(self) -> int:
        """Makes the first run, and a longer one if that shows more of its epochs; returns its number of steps."""
        first = self._run("a whole run", self._new(), FIRST_STEPS)
        self._check(first, FIRST_STEPS)
        self._takes_steps, self._takes_workers = first.takes_steps, first.takes_workers
        starts = epoch_starts(first.steps)
        length = starts[1] if len(starts) > 1 else 0
        num_steps = len(first.steps)
        wanted = 2 * length + max(3, length // 2 + 1)
        if length and wanted < num_steps:
            num_steps = wanted
        elif length and num_steps == FIRST_STEPS and wanted <= MOST_STEPS:
            num_steps = wanted
            first = self._run("a longer whole run", self._new(), num_steps)
            self._check(first, num_steps)
        self._whole = first.steps[:num_steps]
        return num_steps

    def _check(self, one: Run, num_steps: int) -> None:
        if one.outcome in {"raised", "crashed"}:
            raise TargetError(
                f"TARGET {self._spec} failed by itself, without any interruption: {one.error}",
                why=one.traceback or None,
            )
        if one.outcome == "over-budget":
            self._done.missing = (
                f"a run of {num_steps} steps did not end within the budget; it came to {len(one.steps)}"
            )
        if len(one.steps) < 4:
            raise TargetError(
                f"TARGET {self._spec} took {len(one.steps)} optimizer steps in {one.wall_s:.0f} s; at least 4 are compared",
                do="def train(checkpoint_dir, max_steps): ...    that trains until step max_steps of the whole run",
            )

    def _middle(self, starts: Sequence[int]) -> int:
        """A step within an epoch: within the second one, if there is one, so that something was saved by then."""
        if not starts:
            return len(self._whole) // 2
        begin, length = (starts[0], starts[0]) if starts[0] + 2 < len(self._whole) else (0, starts[0])
        return min(begin + max(1, length // 2), len(self._whole) - 2)

    # The ways to interrupt it.

    def _interrupt(self, folder: pathlib.Path, at: int, how: str) -> Run | None:
        """Runs to a step and interrupts; None if it could not be done."""
        if how == "stop":
            if not self._takes_steps:
                return None
            one = self._run(f"a run that stops at step {at}", folder, at)
            return one if one.outcome == "returned" else None
        one = self._run(f"a run that gets {how} at step {at}", folder, len(self._whole), signal_at=at, ordered=how)
        return one if one.outcome in {"signalled", "returned"} and one.handles_signal else None

    def _interrupted(self, kind: Kind, at: int, how: str) -> None:
        folder = self._new()
        first = self._interrupt(folder, at, how)
        if first is None or (how != "stop" and not any(folder.iterdir())):
            return  # nothing was saved by then, so there is nothing to go on from
        self._judge(kind, at, first, folder)

    def _twice(self, stopped: pathlib.Path | None, middle: int) -> None:
        if stopped is None:
            return
        later = middle + max(1, (len(self._whole) - middle) // 2)
        if later >= len(self._whole) - 1:
            return
        folder = self._copy(stopped)
        second = self._run(f"the run from step {middle} to {later}", folder, later)
        if second.outcome == "returned":
            self._judge("resumed-twice", later, second, folder)

    def _other_workers(self, stopped: pathlib.Path, at: int) -> None:
        for number in (2, 0):
            plain = self._trials[0] if self._trials else None
            resumed = self._run(
                f"the run from step {at} with {number} workers", self._copy(stopped), len(self._whole), number
            )
            if resumed.outcome == "over-budget":
                return
            trial = self._trial("other-workers", at, None, resumed)
            self._trials.append(dataclasses.replace(trial, num_workers=(-1, number)))
            if plain is None or trial.differs != "nothing":
                return

    def _judge(self, kind: Kind, at: int, first: Run, folder: pathlib.Path) -> None:
        has_saved = any(folder.iterdir())
        resumed = self._run(f"the run from step {at} ({kind})", folder, len(self._whole))
        if resumed.outcome == "over-budget":
            return
        trial = self._trial(kind, at, first, resumed)
        if trial.differs == "anew" and (not has_saved or kind in {"killed", "terminated"} or not self._has_epochs()):
            return  # nothing had been saved yet: it rightly begins again
        self._trials.append(trial)

    def _trial(self, kind: Kind, at: int, first: Run | None, resumed: Run) -> ResumeTrial:
        if resumed.outcome in {"raised", "crashed"}:
            return ResumeTrial(
                kind=kind, at_step=at, resumed_from=None, num_compared=0, differs="failed", error=resumed.error
            )
        fields: dict[str, Any]
        if self._repeatable == "nothing":
            if first is None:
                fields = {"resumed_from": None, "num_compared": 0, "differs": "nothing"}
            else:
                fields = compare_without_whole(first.steps, resumed.steps)
        else:
            fields = compare(self._whole, resumed.steps, at, with_losses=self._repeatable == "losses")
        return ResumeTrial(kind=kind, at_step=at, **fields)

    def _has_epochs(self) -> bool:
        return len(epoch_starts(self._whole)) > 1

    # Running.

    def _run(
        self,
        name: str,
        folder: pathlib.Path,
        max_steps: int,
        num_workers: int | None = None,
        *,
        signal_at: int | None = None,
        ordered: Any = "SIGKILL",
    ) -> Run:
        self._say(name)
        one = self._runner.run(
            self._spec,
            folder,
            max_steps=max_steps,
            num_workers=num_workers,
            signal_at=signal_at,
            ordered=ordered,
        )
        outcomes: dict[str, Any] = {"returned": "done", "signalled": "done", "raised": "failed"}
        detail = one.error or f"{len(one.steps)} steps"
        self._done.runs.append(
            RunRow(name=name, outcome=outcomes.get(one.outcome, one.outcome), wall_s=one.wall_s, detail=detail)
        )
        return one

    def _new(self) -> pathlib.Path:
        self._num_folders += 1
        folder = self._folder / str(self._num_folders)
        folder.mkdir()
        return folder

    def _copy(self, folder: pathlib.Path) -> pathlib.Path:
        self._num_folders += 1
        return pathlib.Path(shutil.copytree(folder, self._folder / str(self._num_folders)))


def _repeatable(whole: Sequence[Step], again: Sequence[Step]) -> Literal["losses", "samples", "nothing"]:
    again = again[: len(whole)]
    if len(again) < len(whole) or any(a.ids != b.ids for a, b in zip(whole, again, strict=True)):
        return "nothing"
    same = all(is_same_loss(a, b) for a, b in zip(whole, again, strict=True))
    return "losses" if same else "samples"
