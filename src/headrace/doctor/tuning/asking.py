"""Asks a loader, in the lab, what it is set to; loads one batch at most."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from typing import Any, ClassVar, cast

from headrace.doctor.lab.bench import Bench
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute, class_name, is_instance
from headrace.doctor.timing.devices import has_device
from headrace.doctor.timing.setting import AS_IT_IS, Setting, StartMethod
from headrace.doctor.tuning.facts import LoaderNow
from headrace.machine import usable_cores

__all__ = ["AskLoader", "module_of"]


def module_of(spec: str) -> str:
    """Returns the module of a TARGET such as `package.module:make`; empty: it names a file."""
    place = spec.rpartition(":")[0]
    return "" if place.endswith(".py") or os.sep in place else place


@dataclasses.dataclass(frozen=True, slots=True)
class AskLoader:
    """The experiment; yields one `LoaderNow`."""

    name: ClassVar[str] = "loader's setting"
    starts_processes: ClassVar[bool] = False

    module: str = ""
    """Of a TARGET such as `package.module:make`; empty: a file, or an object."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[LoaderNow]:
        """Asks."""
        loader = subject.loader
        library = _library(loader)
        cannot = dict(subject.cannot) | ({} if library == "torch" else {"loader": "only torch's loader is replaced"})
        with bench.holding(None, None, stage="setting"):
            reads = library == "torch" and _reads_batches(subject)
        module = sys.modules.get(self.module)
        yield LoaderNow(
            library=library,
            kind=subject.kind,
            present=_present(subject),
            num_samples=subject.num_samples,
            batch_size=subject.batch_size,
            num_batches=subject.num_batches,
            is_iterable=subject.is_iterable,
            can_read_batches=reads,
            shares_generator=library == "torch" and _shares_generator(loader),
            has_device=has_device(),
            num_cores=usable_cores(),
            cannot=cannot,
            default_start_method=multiprocessing.get_all_start_methods()[0],
            file=getattr(module, "__file__", None),
            num_siblings=len(subject.siblings),
        )


def _library(loader: Any) -> Any:
    if loader is not None and is_instance(loader, "headrace.engine.loader", "DataLoader"):
        return "headrace"
    return "torch" if loader is not None and is_instance(loader, "torch.utils.data", "DataLoader") else "other"


def _present(subject: Subject) -> Setting:
    """Every knob that the loader has."""
    loader = subject.loader
    if loader is None:
        return AS_IT_IS if "workers" in subject.cannot else Setting(num_workers=subject.num_workers)
    prefetch = attribute(loader, "prefetch_factor")
    arguments = attribute(loader, "_arguments")
    runner = attribute(arguments, "runner")
    return Setting(
        num_workers=subject.num_workers,
        prefetch_factor=prefetch if isinstance(prefetch, int) and subject.num_workers else None,
        persistent_workers=bool(attribute(loader, "persistent_workers")),
        pin_memory=bool(attribute(loader, "pin_memory")),
        start_method=_start_method(loader),
        runner=runner if runner in {"threads", "processes"} else None,
    )


def _shares_generator(loader: Any) -> bool:
    """True if sampler and workers draw from one generator: seeds of workers, and the order, come out of it in turn."""
    sampler = attribute(loader, "sampler")
    return hasattr(sampler, "generator") and sampler.generator is attribute(loader, "generator")


def _start_method(loader: Any) -> StartMethod | None:
    context = attribute(loader, "multiprocessing_context")
    if context is None:
        chosen: Any = multiprocessing.get_start_method(allow_none=True)
        return None if chosen == multiprocessing.get_all_start_methods()[0] else cast("StartMethod | None", chosen)
    return cast("StartMethod", context if isinstance(context, str) else context.get_start_method())


def _reads_batches(subject: Subject) -> bool:
    """True if rows asked for at once can be had: `realise` looks closely."""
    if subject.is_iterable or class_name(subject.dataset) == "builtins.list":
        return False
    realise = importlib.import_module("headrace.doctor.timing.realise").realise
    with contextlib.suppress(CannotExamine):
        realise(subject, Setting(reads_batches=True))
        return True
    return False
