"""What tuning works with: rounds, proofs and memory of one target, each in children of their own, within one budget."""

from __future__ import annotations

import importlib
import tempfile
import time
import types
from collections.abc import Callable
from typing import Any, Protocol, Self

from headrace.doctor.lab.launch import ForkOfCaller, launcher_for
from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.meters.memory import MemorySampler
from headrace.doctor.round import told
from headrace.doctor.timing.consumer import Consumer, Touch, TrainStep
from headrace.doctor.timing.setting import Setting
from headrace.doctor.timing.step_check import CheckStep, raise_refusal
from headrace.doctor.timing.timed import Kind, Timed
from headrace.doctor.tuning.asking import AskLoader, module_of
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.model import Proof
from headrace.doctor.tuning.proving import prove
from headrace.doctor.tuning.trial import Trial, trial_of
from headrace.errors import TargetError

__all__ = ["LabRig", "Rig"]

PER_BATCH_S = 60.0
"""Seconds after which a batch is stuck: a round is no place to find out whether a sample hangs."""
MOST_WINDOWS, LEAST_MOST_S = 2.5, 4.0
"""A round may take so many times the window that is wanted, and so many seconds in any case: slow loaders have few batches
in it, and of short epochs only the middle is steady."""


class Rig(Protocol):
    """What can be tried; a made-up one in tests."""

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""

    def ask(self) -> LoaderNow:
        """Returns what the loader is set to."""

    def measure(self, kind: Kind, setting: Setting, *, window_s: float) -> Trial:
        """Runs one round in a fresh process."""

    def prove(self, setting: Setting, *, budget_s: float, max_samples: int | None) -> Proof:
        """Compares the data of a setting with those of the present one."""

    def memory(self, setting: Setting, *, window_s: float) -> tuple[int | None, int | None]:
        """Returns the peak memory of the process tree of a run, and of shared memory, in bytes; None: not told."""


class LabRig:
    """The real one."""

    def __init__(
        self,
        target: Any,
        *,
        consumer: Consumer | None,
        budget_s: float,
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self._target, self._consumer, self._seed, self._say = target, consumer or Touch(), seed, say
        self._spec = target if isinstance(target, str) else f"this {type(target).__name__}"
        self._budget = Budget(budget_s)
        self._start = time.monotonic()
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True)
        trains = isinstance(consumer, TrainStep)
        launcher = launcher_for(target, seed=seed, trains=trains) if isinstance(target, str) else ForkOfCaller(target)
        self._lab = Lab(self._spec, budget=self._budget, per_sample_s=PER_BATCH_S, launcher=launcher)
        self._facts: LoaderNow | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self._lab.__exit__()
        self._folder.cleanup()

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.left_s

    @property
    def used_s(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._start

    def ask(self) -> LoaderNow:
        """As `Rig.ask`.

        Raises:
            TargetError: it cannot be loaded, or does not answer; or there is no such training step.
        """
        module = module_of(self._target) if isinstance(self._target, str) else ""
        records, reason = self._run(AskLoader(module))
        found = next((one for one in records if isinstance(one, LoaderNow)), None)
        if found is None:
            raise TargetError(f"TARGET {self._spec} did not say what it is: {reason}")
        self._facts = found
        # In the child that has just answered: nothing of the user's is run twice for it.
        refused: list[Any] = []
        self._lab.run(CheckStep(self._consumer), refused.append)
        raise_refusal(refused)
        return found

    def measure(self, kind: Kind, setting: Setting, *, window_s: float) -> Trial:
        """As `Rig.measure`."""
        timed, reason = self._timed(kind, setting, window_s)
        if timed is None:
            return Trial(setting=setting, kind=kind, rate_per_s=None, failure=reason)
        return trial_of(timed, None if self._facts is None else self._facts.num_samples)

    def prove(self, setting: Setting, *, budget_s: float, max_samples: int | None) -> Proof:
        """As `Rig.prove`."""
        # A child would hold memory and locks for nothing while others work.
        self._lab.close()
        return prove(
            self._target,
            setting,
            seed=self._seed,
            budget_s=min(budget_s, self.left_s),
            max_samples=max_samples,
            reshuffles=self._facts is not None and self._facts.reshuffles(setting),
        )

    def memory(self, setting: Setting, *, window_s: float) -> tuple[int | None, int | None]:
        """As `Rig.memory`. What this process and its helpers take anyway is not counted."""
        with MemorySampler() as sampler:
            timed, _ = self._timed("L", setting, window_s)
        series = sampler.series
        if timed is None or series.peaks is None or not series.moments:
            return None, None
        first = series.moments[0]
        total = shm = None
        if series.peaks.total_bytes is not None and first.total_bytes is not None:
            total = max(series.peaks.total_bytes - first.total_bytes, 0)
        if series.peaks.shm_used_bytes is not None and first.shm_used_bytes is not None:
            shm = max(series.peaks.shm_used_bytes - first.shm_used_bytes, 0)
        return total, shm

    def _timed(self, kind: Kind, setting: Setting, window_s: float) -> tuple[Timed | None, str]:
        run = importlib.import_module("headrace.doctor.timing.runs").TimedRun(
            kind=kind,
            setting=setting,
            consumer=self._consumer,
            window_s=window_s,
            most_s=min(max(MOST_WINDOWS * window_s, LEAST_MOST_S), max(self.left_s, window_s)),
            seed=self._seed,
            folder=self._folder.name,
        )
        records, reason = self._run(run)
        timed = next((one for one in records if isinstance(one, Timed)), None)
        return timed, reason or "the round gave nothing"

    def _run(self, experiment: Any) -> tuple[list[Any], str]:
        """Runs it in a child of its own; returns its records, and why it did not end well."""
        self._lab.close()
        records: list[Any] = []
        ending = self._lab.run(experiment, records.append)
        return records, told(ending)
