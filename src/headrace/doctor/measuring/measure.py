"""Measures a loader, or a loop, within a budget."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from headrace.doctor.lab.launch import ForkOfCaller, launcher_for
from headrace.doctor.lab.outside import Budget
from headrace.doctor.measuring.model import Measurement
from headrace.doctor.measuring.options import Options
from headrace.doctor.measuring.rounds import RoundRunner
from headrace.doctor.measuring.session import Session
from headrace.doctor.subject.target import check
from headrace.doctor.timing.consumer import TrainStep
from headrace.machine import cpu_pressure

__all__ = ["Options", "measure"]

RESERVE_S, RESERVE = 1.5, 0.05
"""Seconds, and part of the budget, that are left for putting together what was seen."""


def measure(
    target: Any, options: Options | None = None, *, progress: Callable[[str], None] | None = None
) -> Measurement:
    """Measures a target within the budget.

    Args:
        target: TARGET as `train.py:make_loader`, or a loader itself, which runs in forks of this process.
        options: How to measure.
        progress: Told, in a few words, what is being done.

    Raises:
        TargetError: TARGET cannot be loaded, or cannot be timed at all; the message names round, stage and line.
        ConfigurationError: a number of workers was asked for, and this loader's cannot be changed.

    Nothing that was started is left afterwards.
    """
    options = options or Options()
    check(target, do="headrace measure train.py:make_loader")
    budget = Budget((1 - RESERVE) * options.budget_s - RESERVE_S)
    pressure = cpu_pressure()
    spec = target if isinstance(target, str) else f"this {type(target).__name__}"
    trains = isinstance(options.consumer, TrainStep)
    launcher = (
        launcher_for(target, seed=options.seed, trains=trains) if isinstance(target, str) else ForkOfCaller(target)
    )
    with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder:
        runner = RoundRunner(
            spec,
            launcher,
            budget=budget,
            stuck_s=min(options.stuck_s, options.budget_s / 2),
            folder=folder,
            say=progress or (lambda _: None),
        )
        with runner.lab:
            return Session(target, spec, options, runner, pressure).run()
