"""Made-up evidence about a training loop. Nothing here is measured."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces, PassTrace
from headrace.doctor.evidence.training import (
    CheckpointTrace,
    CheckpointTraces,
    ModelTrace,
    ModelTraces,
    OptimizerTrace,
    ScheduleTrace,
    TrainingTrace,
)

__all__ = ["checkpoints", "loader_trace", "loaders", "loop", "model", "models", "optimizer", "saved", "schedule"]


def optimizer(**more: Any) -> OptimizerTrace:
    """An optimizer that took 40 steps, each with gradients of its own."""
    facts: dict[str, Any] = {
        "number": 0,
        "where": "train.py:20",
        "kind": "SGD",
        "num_steps": 40,
        "num_clears": 40,
        "num_parameters": 4,
        "step_place": "train.py:27",
        "clear_place": "train.py:25",
    }
    return OptimizerTrace(**facts | more)


def schedule(**more: Any) -> ScheduleTrace:
    """A schedule that was stepped after each of 40 optimizer steps."""
    facts: dict[str, Any] = {
        "kind": "StepLR",
        "where": "train.py:21",
        "step_place": "train.py:28",
        "num_steps": 40,
        "num_early": 0,
        "num_optimizer_steps": 40,
        "ends_with_optimizer": False,
    }
    return ScheduleTrace(**facts | more)


def loop(*optimizers: OptimizerTrace, schedules: tuple[ScheduleTrace, ...] = (), **more: Any) -> TrainingTrace:
    """A training loop with these optimizers; one healthy one if none is given."""
    chosen = optimizers or (optimizer(),)
    num_steps = sum(one.num_steps for one in chosen)
    facts: dict[str, Any] = {"num_steps": num_steps, "num_backwards": num_steps}
    return TrainingTrace(**facts | more, optimizers=chosen, schedules=schedules)


def model(**more: Any) -> ModelTrace:
    """A model with dropout that took 40 steps in training mode."""
    facts: dict[str, Any] = {
        "number": 0,
        "where": "train.py:18",
        "kind": "Net",
        "num_calls": 60,
        "num_evaluations": 20,
        "mode_sensitive": ("drop (Dropout)",),
        "steps_training": 40,
        "num_parameters": 4,
        "num_optimised": 4,
        "num_reached": 4,
        "num_steps": 40,
    }
    return ModelTrace(**facts | more)


def models(*traces: ModelTrace, **more: Any) -> ModelTraces:
    """These models; one healthy one if none is given."""
    return ModelTraces(models=traces or (model(),), **more)


def loader_trace(
    number: int = 0, role: str = "train", *, steps: tuple[int, ...] = (10, 10), **more: Any
) -> LoaderTrace:
    """A loader over 40 samples that was walked through once for each entry of `steps`."""
    passes = tuple(
        PassTrace(
            started_s=0.0,
            wall_s=1.0,
            first_wait_s=0.1,
            wait_s=0.1,
            longest_waits_s=(),
            num_batches=10,
            num_samples=40,
            is_exhausted=True,
            order_hash=None,
            num_worker_starts=0,
            num_steps=num_steps,
        )
        for num_steps in steps
    )
    facts: dict[str, Any] = {
        "number": number,
        "where": f"train.py:{12 + number}",
        "kind": "DataLoader",
        "role": role,
        "dataset_kind": "TensorDataset",
        "num_samples": 40,
        "batch_size": 4,
        "drop_last": False,
        "num_workers": 0,
        "persistent_workers": False,
        "sampler_kind": "RandomSampler",
        "shuffles": True,
        "has_set_epoch": False,
        "num_set_epochs": 0,
        "is_distributed": False,
        "iter_places": (("train.py:24", len(passes)),),
        "passes": passes,
        "num_passes": len(passes),
        "num_drawn": 40,
        "root": "data",
    }
    return LoaderTrace(**facts | more)


def loaders(*traces: LoaderTrace, **more: Any) -> LoaderTraces:
    """A finished run with these loaders."""
    facts: dict[str, Any] = {
        "script": "train.py",
        "wall_s": 2.0,
        "rank": 0,
        "world_size": 1,
        "overlaps": (),
        "outcome": "finished",
    }
    return LoaderTraces(**facts | more, loaders=traces)


def saved(*holds: str, step: int = 10, **more: Any) -> CheckpointTrace:
    """A checkpoint at `last.pt`."""
    facts: dict[str, Any] = {"path": "last.pt", "where": "train.py:33", "step": step, "keys": (), "holds": holds}
    return CheckpointTrace(**facts | more)


def checkpoints(*traces: CheckpointTrace, **more: Any) -> CheckpointTraces:
    """The checkpoints of a run of 20 steps with an optimizer that keeps momentum."""
    facts: dict[str, Any] = {"needed": ("model", "optimizer"), "num_steps": 20}
    return CheckpointTraces(**facts | more, saved=traces)
