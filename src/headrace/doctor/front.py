"""`headrace.diagnose`, `measure`, `tune` and `compare`: the doctor from Python and notebooks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.doctor.diagnose import Options
from headrace.doctor.diagnose import diagnose as _diagnose
from headrace.doctor.evidence.equivalence import Equivalence, Level
from headrace.doctor.report.model import Report
from headrace.doctor.suppression import apply_comments

if TYPE_CHECKING:
    from headrace.doctor.measuring.model import Measurement
    from headrace.doctor.tuning.model import Tuning

__all__ = ["compare", "diagnose", "measure", "tune"]


def compare(
    loader_a: Any,
    loader_b: Any,
    *,
    levels: Sequence[Level] = ("E0", "E1", "E2", "E3", "E4"),
    seed: int = 0,
    epochs: int = 2,
    samples: int | None = None,
    speed: bool = False,
    budget_s: float = 90.0,
) -> Equivalence:
    """Says whether two loaders deliver the same data, and if not, which sample differs first.

    Args:
        loader_a: A loader or data set, or the text `train.py:make_loader`, as on the command line.
        loader_b: The other one.
        levels: What to compare: E0 samples, E1 order and batches, E2 targets, E3 fixed fields, E4 random fields, E5
            delivered batches.
        seed: Seed of the global generators of both, before each epoch.
        epochs: Epochs to walk; two, because random draws must not repeat from one to the next.
        samples: Only the first samples of each epoch; None: all.
        speed: Unless the data differ, also time both in turn, each alone, while the budget lasts.
        budget_s: Seconds for everything together.

    Returns:
        The comparison: `found.verdict` (same, different, inconclusive), `found.levels` (each with verdict, reason and
        first difference), `found.first_level` (the lowest that differs), `found.speed` (outcome, ratio and interval of B
        beside A; None: not asked).

    Raises:
        TargetError: one of them is nothing that can be walked.

    The loaders themselves are not touched: they are walked in forks of this process (Linux, macOS).
    """
    from headrace.doctor.sameness.compare import Options
    from headrace.doctor.sameness.compare import compare as _compare
    from headrace.doctor.speeds.compare import compare_with_speed

    options = Options(levels=levels, seed=seed, num_epochs=epochs, max_samples=samples, budget_s=budget_s)
    return (compare_with_speed if speed else _compare)(loader_a, loader_b, options)


def diagnose(
    target: Any,
    *,
    budget_s: float = 90.0,
    per_sample_s: float = 10.0,
    quick: bool = False,
    full: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    contract: str | os.PathLike[str] | None = None,
    num_classes: int | None = None,
) -> Report:
    """Examines a loader or data set without changing it, and names each fault with its sample.

    Args:
        target: A loader or data set, also one that exists only in a notebook; several as (train, val) or a dict; or
            the text `train.py:make_loader`, as on the command line.
        budget_s: Seconds for everything together; what is left out then is reported as skipped.
        per_sample_s: Seconds after which a sample is stuck.
        quick: Look at few samples: at most some 20 s.
        full: Try every sample.
        select: Codes, or beginnings of codes, of the only rules to judge.
        ignore: Codes, or beginnings of codes, of rules to leave out.
        contract: File of a contract to hold the samples against.
        num_classes: Number of classes, if the data set does not say it.

    Returns:
        The report: `report.findings` (each with code, message, sample_ids, where, fix), `report.exit_status`;
        `print(report.text())` shows it as the command does, a notebook shows it by itself.

    Raises:
        TargetError: it is nothing that can be examined.
        ConfigurationError: no rule has a selected code, or options exclude each other.

    The loader itself is not touched: it is examined in forks of this process (Linux, macOS), so neither random state,
    nor iterators, nor memory of the caller change, and a hang or a crash is a finding. An object that holds CUDA
    tensors cannot be examined this way; name its file instead.
    """
    options = Options(
        budget_s=budget_s,
        per_sample_s=per_sample_s,
        quick=quick,
        full=full,
        select=select,
        ignore=ignore,
        contract=contract,
        num_classes=num_classes,
    )
    command = f"headrace.diagnose({target if isinstance(target, str) else '...'})"
    return apply_comments(_diagnose(target, options, command=command))


def measure(
    target: Any,
    *,
    step: Callable[[Any], Any] | str | None = None,
    step_ms: float | None = None,
    watched: str | None = None,
    asleep: bool = False,
    workers: int | None = None,
    budget_s: float = 60.0,
    seed: int = 0,
    cold: bool = False,
) -> Measurement:
    """Says what a training loop waits for, what would help, and by how much.

    Args:
        target: A loader, also one that exists only in a notebook, or the text `train.py:make_loader`.
        step: The training step: a function that takes a batch, or the text `train.py:train_step`. Default: none, and the
            loader alone is measured.
        step_ms: Instead of a step: so many milliseconds of computing for each batch.
        watched: Instead of a step: a report of `headrace watch --format json`, which says how long a step of a script took.
        asleep: With `step_ms` or `watched`: sleep instead, as while a device computes.
        workers: Measure with so many workers. Default: as the loader is set.
        budget_s: Seconds for everything together.
        seed: Of the global generators before each epoch, and of the order of rounds.
        cold: Files leave the page cache before each round. Default: they are read once beforehand.

    Returns:
        The measurement: `found.conclusion` (verdict, sentence, causes with evidence and remedies), `found.plain` (rounds
        without and with workers), `found.decomposition`, `found.stages`, and every round in `found.runs`.

    Raises:
        TargetError: it is nothing that can be timed, or its code fails; the message names round, stage and line.
        ConfigurationError: options that cannot be meant.

    Everything runs in forks of this process (Linux, macOS), so a step that is given trains copies of its model. A model on
    a CUDA device cannot be forked: give the text `train.py:train_step` for both.
    """
    from headrace.doctor.measuring.measure import Options
    from headrace.doctor.measuring.measure import measure as _measure
    from headrace.doctor.timing.consumer import chosen
    from headrace.errors import ConfigurationError

    if callable(step) and isinstance(target, str):
        raise ConfigurationError(
            "a function as step needs the loader itself as target: a TARGET of a file runs in a process that knows no function "
            "of this one",
            do='hr.measure("train.py:make_loader", step="train.py:train_step")',
        )
    given, train = (step, None) if callable(step) else (None, step)
    with chosen(given=given, train=train, step_ms=step_ms, watched=watched, is_busy=not asleep) as consumer:
        options = Options(
            consumer=consumer,
            workers=workers,
            budget_s=budget_s,
            seed=seed,
            is_cold=cold,
            command=f"headrace.measure({target if isinstance(target, str) else '...'})",
        )
        return _measure(target, options)


def tune(
    loader: Any,
    *,
    step: Callable[[Any], Any] | str | None = None,
    need: float | None = None,
    step_ms: float | None = None,
    watched: str | None = None,
    margin: float = 0.25,
    budget_s: float = 300.0,
    memory_bytes: int | None = None,
    workers_max: int | None = None,
    seed: int = 0,
) -> Tuning:
    """Finds the simplest setting that meets the need, and proves that it delivers the same data.

    Args:
        loader: A loader, or the text `train.py:make_loader`, as on the command line.
        step: The training step: takes a batch, or takes nothing and returns what takes a batch; or the text
            `train.py:train_step`. None: see the next three.
        need: Samples per second that the loader has to supply.
        step_ms: Milliseconds of a training step that is emulated.
        watched: A report of `headrace watch --format json`, which says how long a step of a script took. Without any of the
            four the fastest setting is looked for.
        margin: What the loader should supply more than the training step takes, as a share.
        budget_s: Seconds for everything together.
        memory_bytes: What the processes of the loader may take together. Default: half of what is free.
        workers_max: Most workers to try. Default: the usable cores; four times as many where workers sleep.
        seed: Of the loader's global generators and of the order of rounds.

    Returns:
        `found.choice.outcome` (keep, change, inconclusive), `found.says` (the change), `found.gain`, `found.tried` (every
        setting, with its proof), `found.edit` (what to write, and the way back); `print(found.text())` shows it as the
        command does.

    Raises:
        TargetError: it cannot be run as it is.
        ConfigurationError: options exclude each other.

    The loader itself is not touched: it runs in forks of this process (Linux, macOS).
    """
    from headrace.doctor.tuning.tune import Options
    from headrace.doctor.tuning.tune import tune as _tune

    options = Options(
        need_per_s=need,
        step_ms=step_ms,
        train=step if isinstance(step, str) else None,
        watched=watched,
        margin=margin,
        budget_s=budget_s,
        memory_bytes=memory_bytes,
        workers_max=workers_max,
        seed=seed,
    )
    command = f"headrace.tune({loader if isinstance(loader, str) else '...'})"
    return _tune(loader, options, step=None if isinstance(step, str) else step, command=command)
