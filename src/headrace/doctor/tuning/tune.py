"""Tunes a loader: the simplest setting that meets the need and is proven to deliver the same data."""

from __future__ import annotations

import dataclasses
import datetime as dt
import shutil
from collections.abc import Callable
from typing import Any

from headrace.doctor.meters.preflight import judge_noise
from headrace.doctor.meters.sampling import SHM
from headrace.doctor.subject.target import check, check_spec
from headrace.doctor.timing.consumer import Consumer, chosen
from headrace.doctor.timing.setting import AS_IT_IS
from headrace.doctor.tuning.choice import Choice, Limits
from headrace.doctor.tuning.course import Course
from headrace.doctor.tuning.editing import edit_of
from headrace.doctor.tuning.model import Tuning
from headrace.doctor.tuning.pace import Wishes
from headrace.doctor.tuning.rig import LabRig
from headrace.errors import ConfigurationError
from headrace.machine import cpu_pressure, usable_memory

__all__ = ["Options", "tune"]

SHARE = 0.5
"""Part of the free memory, and of /dev/shm, that a setting may take if nothing is said: the training step needs the rest."""
WINDOW_SHARE, SHORTEST_S, LONGEST_S = 1 / 150, 0.4, 3.0
"""The steady part of a round as a part of the budget: some 100 rounds fit in."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is wanted.

    Raises:
        ConfigurationError: options that cannot be meant, or exclude each other.
    """

    need_per_s: float | None = None
    """Samples per second that the loader has to supply."""
    step_ms: float | None = None
    """Milliseconds of a training step that is emulated."""
    train: str | None = None
    """The training step: `file.py:train_step`."""
    watched: str | None = None
    """A report of `headrace watch` that says how long a training step takes."""
    margin: float = 0.25
    """What the loader should supply more than the training step takes. Default 25 %: below that, slow batches are felt."""
    budget_s: float = 300.0
    """Seconds for everything together."""
    memory_bytes: int | None = None
    """Of the whole process tree of the loader. Default: half of what is free."""
    workers_max: int | None = None
    """Default: the usable cores; four times as many where workers sleep."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("need_per_s", "step_ms", "budget_s", "memory_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"{name}={value:g}: must be above 0")
        if not self.margin >= 0:
            raise ConfigurationError(f"margin={self.margin:g}: must not be negative")
        if self.workers_max is not None and self.workers_max < 0:
            raise ConfigurationError(f"workers_max={self.workers_max}: must not be negative")
        if sum(way is not None for way in (self.step_ms, self.train, self.watched)) > 1:
            raise ConfigurationError("a training step is emulated or given, not both: one of step_ms, train, watched")


def tune(
    target: Any,
    options: Options | None = None,
    *,
    step: Callable[..., Any] | None = None,
    progress: Callable[[str], None] | None = None,
    command: str = "",
) -> Tuning:
    """Returns the simplest setting that meets the need, and what was tried.

    Args:
        target: TARGET as `train.py:make_loader`, or a loader itself, which is run in forks of this process.
        options: What is wanted.
        step: The training step as a function of this process; only for a target that is an object.
        progress: Told, in a few words, what is being done and how much time is left.
        command: What was typed.

    Raises:
        TargetError: the target cannot be loaded, or does not run as it is.
        ConfigurationError: a step and a TARGET in words.

    Nothing that was started is left afterwards, and no file is changed.
    """
    options = options or Options()
    check(target, do="headrace tune train.py:make_loader")
    if step is not None and isinstance(target, str):
        raise ConfigurationError(
            "a function of this process cannot train on a TARGET in words", do='train="train.py:train_step"'
        )
    if options.train is not None:
        check_spec(options.train)
    with chosen(given=step, train=options.train, step_ms=options.step_ms, watched=options.watched) as consumer:
        return _run(target, options, consumer, progress or (lambda _: None), command)


def _run(target: Any, options: Options, consumer: Consumer | None, say: Callable[[str], None], command: str) -> Tuning:
    noise = judge_noise(cpu_pressure())
    limits = Limits(
        memory_bytes=options.memory_bytes or int(SHARE * usable_memory()),
        shm_bytes=_shm_limit(),
    )
    with LabRig(target, consumer=consumer, budget_s=options.budget_s, seed=options.seed, say=say) as rig:
        say("looking at the loader")
        facts = rig.ask()
        wishes = Wishes(
            need_per_s=options.need_per_s,
            has_step=consumer is not None,
            step_name="no training step" if consumer is None else consumer.name,
            margin=options.margin,
            budget_s=options.budget_s,
            workers_max=options.workers_max,
            limits=limits,
            seed=options.seed,
            window_s=min(max(WINDOW_SHARE * options.budget_s, SHORTEST_S), LONGEST_S),
        )
        course = Course(rig, wishes, facts, say)
        choice = course.run()
        used_s = rig.used_s
    return _result(target, options, consumer, course, choice, noise=noise, used_s=used_s, command=command)


def _shm_limit() -> int | None:
    try:
        return int(SHARE * shutil.disk_usage(SHM).total)
    except OSError:
        return None


def _result(
    target: Any,
    options: Options,
    consumer: Consumer | None,
    course: Course,
    choice: Choice,
    *,
    noise: str,
    used_s: float,
    command: str,
) -> Tuning:
    facts, spec = course.facts, target if isinstance(target, str) else None
    change = choice.setting
    floor = None if course.confirmed is None else course.confirmed.comparison.floor
    left_out = list(course.left_out)
    if facts.num_siblings > 1:
        left_out.append(f"TARGET gives {facts.num_siblings} loaders: the first was looked at")
    if "workers" in facts.cannot:
        left_out.append(facts.cannot["workers"])
    if consumer is None and options.need_per_s is None:
        left_out.append("how much is needed is not known: --step-ms, --train, --watched or --need says it")
    return Tuning(
        spec=spec or f"this {type(target).__name__}",
        command=command,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        facts=facts,
        consumer="no training step" if consumer is None else consumer.name,
        is_emulated=consumer is not None and consumer.is_emulated,
        seed=options.seed,
        budget_s=options.budget_s,
        used_s=used_s,
        noise=noise,
        need=course.need,
        margin=options.margin,
        choice=choice,
        says=facts.describe(AS_IT_IS if change is None else change),
        gain=None if change is None else course.notes[change].gain,
        tried=course.notes.rows(course.finalists, course.need, course.pace.wishes.limits),
        num_blocks=course.num_blocks,
        floor=None if floor is None or floor.bound_log == float("inf") else floor.bound_log,
        edit=None if change is None else edit_of(facts, change, spec),
        left_out=tuple(left_out),
    )
