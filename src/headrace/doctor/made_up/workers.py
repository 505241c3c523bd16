"""Made-up evidence of workers, in few words: for the examples of the rules. Nothing here is measured."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.randomness import GeneratorDraws, WorkerDraws
from headrace.doctor.evidence.workers import (
    FieldDifference,
    StaleAttribute,
    StaleCopies,
    WorkerComparison,
    WorkerEnd,
    WorkerEnds,
    WorkerError,
    WorkerShares,
)

__all__ = ["changed", "compared", "difference", "drawn", "drew", "end", "error", "fared", "shared", "stale"]


def drawn(path: str, **more: Any) -> GeneratorDraws:
    """A generator that every sample draws from, differently in each worker and epoch if nothing else is said."""
    is_held = "." in path and path != "numpy.random"
    said = {
        "kind": "numpy.Generator" if is_held else path,
        "is_held": is_held,
        "num_moved": 16,
        "num_followed": 16,
        "same_over_workers": False,
        "same_over_epochs": False,
    }
    return GeneratorDraws(path=path, **{**said, **more})


def drew(*generators: GeneratorDraws, **more: Any) -> WorkerDraws:
    """Two fresh workers in each of two epochs."""
    said: dict[str, Any] = {
        "num_workers": 2,
        "num_own_workers": 2,
        "is_persistent": False,
        "is_iterable": False,
        "role": "train",
        "worker_init_fn": None,
    }
    return WorkerDraws(generators=generators, **{**said, **more})


def error(error_type: str, message: str = "", **more: Any) -> WorkerError:
    """An exception in a worker, while sample 3 was prepared, that one process does not meet."""
    said: dict[str, Any] = {
        "stage": "sample",
        "sample_ids": (3,),
        "at": "train.py:12 in __getitem__",
        "arrives_as": error_type,
        "in_one_process": "fine",
    }
    return WorkerError(error_type=error_type, message=message, **{**said, **more})


def end(kind: Any, **more: Any) -> WorkerEnd:
    """A worker that ended or hung with sample 3 in hand; one process prepares it."""
    said: dict[str, Any] = {
        "cause": "SIGSEGV" if kind == "died" else "",
        "stage": "sample",
        "sample_ids": (3,),
        "at": "train.py:12 in __getitem__",
        "stack": None,
        "waited_s": 0.0 if kind == "died" else 5.0,
        "fewest_ids": (3,),
        "num_attempts": 1,
        "is_any_sample": False,
        "in_one_process": "fine",
    }
    return WorkerEnd(kind=kind, **{**said, **more})


def fared(*, ends: tuple[WorkerEnd, ...] = (), errors: tuple[WorkerError, ...] = (), **more: Any) -> WorkerEnds:
    """Two workers of the loader's own."""
    said: dict[str, Any] = {"num_workers": 2, "num_own_workers": 2, "start_method": "fork", "num_samples": 64}
    return WorkerEnds(ends=ends, errors=errors, **{**said, **more})


def difference(field: str, number: int = 5, **more: Any) -> FieldDifference:
    """A field that differs in some of 64 samples, unless a worker is alone."""
    said: dict[str, Any] = {"num_compared": 64, "sample_ids": tuple(range(number)), "lone_worker": "equal"}
    return FieldDifference(field=field, num_different=number, **{**said, **more})


def compared(*differences: FieldDifference, **more: Any) -> WorkerComparison:
    """64 samples of two workers against one process."""
    said: dict[str, Any] = {
        "num_workers": 2,
        "num_own_workers": 2,
        "start_method": "fork",
        "num_compared": 64,
        "fixed_fields": ("image", "label"),
    }
    return WorkerComparison(differences=differences, **{**said, **more})


def shared(*per_worker: int, **more: Any) -> WorkerShares:
    """A stream that all workers came to the end of, and of which nothing is lost."""
    said: dict[str, Any] = {
        "num_workers": len(per_worker),
        "num_own_workers": len(per_worker),
        "is_iterable": True,
        "is_complete": True,
        "num_batches": None,
        "batch_size": 8,
        "drop_last": False,
        "num_single": sum(per_worker),
        "num_missing": 0,
    }
    return WorkerShares(per_worker=per_worker, **{**said, **more})


def changed(change: str, **more: Any) -> StaleAttribute:
    """A change between epochs that samples follow in one process, and not in persistent workers."""
    said: dict[str, Any] = {
        "attributes": ("epoch",),
        "at": "train.py:20",
        "has_effect": True,
        "reaches_workers": False,
        "is_between_epochs": True,
        "sample_id": 0,
    }
    return StaleAttribute(change=change, **{**said, **more})


def stale(*tried: StaleAttribute) -> StaleCopies:
    """What was tried with two persistent workers."""
    return StaleCopies(num_workers=2, tried=tried)
