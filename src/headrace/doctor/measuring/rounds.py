"""Runs rounds one after another in a lab, each in a child of its own, in the state of the cache that was asked for."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from headrace.doctor.lab.outside import Budget, Experiment, Lab
from headrace.doctor.lab.starting import Launcher
from headrace.doctor.measuring.model import RoundRun
from headrace.doctor.meters.page_cache import CacheLabel, FileRange, Residency, evict, label, resident
from headrace.doctor.round import told
from headrace.doctor.timing.runs import TimedRun
from headrace.doctor.timing.timed import Timed

__all__ = ["OVER", "RoundRunner"]
LEAST_S = 0.3
"""No child starts, loads and runs in less."""
OVER = "over budget"
"""How the lab says that there was no time left."""


class RoundRunner:
    """Keeps every round that ran, in order."""

    def __init__(
        self,
        spec: str,
        launcher: Launcher,
        *,
        budget: Budget,
        stuck_s: float,
        folder: str,
        say: Callable[[str], None],
    ) -> None:
        self.lab = Lab(spec, budget=budget, per_sample_s=stuck_s, launcher=launcher)
        self.runs: list[RoundRun] = []
        self.planned: Sequence[FileRange] = ()
        self.is_cold = False
        self._budget, self._folder, self.say = budget, pathlib.Path(folder), say
        self._first: Residency | None = None
        self._last: Residency | None = None
        self._num_folders = 0

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.left_s

    def run(
        self, arm: str, wish: TimedRun, *, block: int | None = None, is_control: bool = False, told_as: str = ""
    ) -> RoundRun:
        """Runs one round and keeps it; nothing is begun, or kept, for which there is no time."""
        self.say(f"{told_as or arm}, round {len(self.runs) + 1}; at most {self.left_s:.0f} s left")
        wish = dataclasses.replace(wish, most_s=max(0.5, min(wish.most_s, self.left_s)), folder=self.new_folder())
        records, failure = self.experiment(wish)
        timed = next((one for one in records if isinstance(one, Timed)), None)
        if timed is not None and timed.window is None and not failure and wish.num_epochs is None:
            failure = timed.why or "too few batches for a steady part"
        if timed is not None and not timed.steps.got_s:
            timed = None
        if timed is None and failure.startswith(OVER):
            return self._made(arm, timed, block=block, is_control=is_control, failure=failure)
        return self.keep(arm, timed, block=block, is_control=is_control, failure=failure)

    def keep(self, arm: str, timed: Timed | None, **more: Any) -> RoundRun:
        """Keeps a round that ran."""
        self.runs.append(self._made(arm, timed, **more))
        return self.runs[-1]

    def _made(
        self, arm: str, timed: Timed | None, *, block: int | None = None, is_control: bool = False, failure: str = ""
    ) -> RoundRun:
        number = len(self.runs) + 1
        return RoundRun(id=f"r{number:02}", arm=arm, block=block, is_control=is_control, timed=timed, failure=failure)

    def experiment(self, experiment: Experiment) -> tuple[list[Any], str]:
        """Runs any experiment in a child of its own; returns its records, and why it did not end well."""
        if self.is_cold:
            seen = evict(self.planned)
            self._first = self._first or seen
        records: list[Any] = []
        if self.left_s < LEAST_S:
            return records, OVER
        ending = self.lab.run(experiment, records.append)
        return records, told(ending)

    def new_folder(self) -> str:
        """An empty folder for accounts."""
        self._num_folders += 1
        folder = self._folder / str(self._num_folders)
        folder.mkdir(parents=True)
        return str(folder)

    def begin(self, planned: Sequence[FileRange], *, is_cold: bool) -> None:
        """From here on the cache is controlled."""
        self.planned, self.is_cold = planned, is_cold
        self._first = None if is_cold else resident(planned)

    def cache_label(self) -> CacheLabel:
        """Of everything that ran since `begin`."""
        first = self._first if self._first is not None else resident(self.planned)
        return label(first, resident(self.planned))
