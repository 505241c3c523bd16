"""The user's loader with a setting applied: one thing changed, everything else kept."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any

from headrace.contract.view import flatten, view_form
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute, class_name, descends_from, is_headrace, is_instance, is_torch
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.timing.devices import has_device
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.errors import ConfigurationError, SourceError

__all__ = ["Passes", "realise", "with_changes"]

OF_WORKERS = {
    "prefetch_factor": "nothing is prefetched",
    "persistent_workers": "nothing persists",
    "start_method": "nothing is started",
}
"""What a setting says of workers -> what is so without them."""


def realise(subject: Subject, setting: Setting) -> Any:
    """Returns the user's loader with a setting applied, as something that can be walked again and again.

    The loader itself is handed back where nothing is changed. A changed one is another object, which shares data set,
    sampler and generators with it.

    Raises:
        CannotExamine: this kind of loader, or this machine, cannot do that; the message is the reason.
    """
    if setting == AS_IT_IS:
        return Passes(subject) if subject.loader is None else subject.loader
    if setting.pin_memory and not has_device():
        raise CannotExamine("pin_memory=True: there is no CUDA device here, and without one nothing is pinned")
    try:
        if setting.loader is not None:
            return _switched(subject, setting)
        if is_headrace(subject.loader):
            return _of_headrace(subject, setting)
        if setting.runner is not None:
            raise CannotExamine(
                f"runner={setting.runner!r} is a choice of headrace's own loader, not of {subject.kind}"
            )
        if is_torch(subject.loader):
            return _of_torch(subject, setting)
    except (ConfigurationError, SourceError) as error:
        raise CannotExamine(f"{setting.name}: {error.what}") from error
    return _of_another(subject, setting)


class Passes:
    """A target without a loader of torch or headrace: each pass is made as its user makes it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __iter__(self) -> Iterator[Any]:
        return self._subject.epoch()


def with_changes(subject: Subject, loader: Any, **changes: Any) -> Any:
    """Returns a realised torch loader again with attributes changed (see `rebuild`), its workers and pinning kept."""
    base = vars(loader).get("base_dataloader")
    if base is None:
        return rebuild(loader, **({"pin_memory": attribute(loader, "pin_memory")} | changes))
    same = subject.with_workers(loader.num_workers)  # a copy of accelerate's wrapper
    same.__dict__ = dict(vars(loader))
    same.__dict__["base_dataloader"] = rebuild(base, **({"pin_memory": attribute(base, "pin_memory")} | changes))
    return same


def _check_workers(setting: Setting, num_workers: int) -> None:
    """Settings of workers need workers: one that changes nothing is no setting."""
    for name, result in OF_WORKERS.items():
        if num_workers == 0 and getattr(setting, name) not in {None, False}:
            raise CannotExamine(f"{name}={getattr(setting, name)!r} with num_workers=0: without workers {result}")


def _num_workers(subject: Subject, setting: Setting) -> int:
    return subject.num_workers if setting.num_workers is None else setting.num_workers


def _of_torch(subject: Subject, setting: Setting) -> Any:
    loader = subject.loader
    num_workers = _num_workers(subject, setting)
    _check_workers(setting, num_workers)
    changes: dict[str, Any] = {"pin_memory": bool(attribute(loader, "pin_memory"))}
    for name in ("prefetch_factor", "persistent_workers", "pin_memory"):
        if getattr(setting, name) is not None:
            changes[name] = getattr(setting, name)
    if setting.start_method is not None:
        changes["multiprocessing_context"] = setting.start_method
    if setting.reads_batches:
        changes |= _reading_batches(subject)
    return subject.with_workers(num_workers, **changes)


def _reading_batches(subject: Subject) -> dict[str, Any]:
    """The batch sampler as sampler, and no batch size: torch then asks the data set for a list of rows, and joins nothing."""
    loader = subject.loader
    if subject.is_iterable:
        raise CannotExamine("reads_batches: the data set is a stream, which is not asked for rows")
    if attribute(loader, "batch_sampler") is None:
        raise CannotExamine(
            "reads_batches: the loader joins nothing (batch_size=None), so there are no batches to read"
        )
    if not subject.has_default_collate:
        raise CannotExamine(
            f"reads_batches: samples are joined by {subject.collate_name}, which a batch read at once would not go through"
        )
    _check_lists(subject)
    convert = importlib.import_module("torch.utils.data").default_convert
    return {
        "sampler": loader.batch_sampler,
        "batch_sampler": None,
        "batch_size": None,
        "drop_last": False,
        "collate_fn": convert,
    }


def _check_lists(subject: Subject) -> None:
    """Raises unless rows that are asked for at once look as they do joined one by one."""
    rows = list(range(min(2, subject.num_samples or 0)))
    kind = subject.dataset_kind
    if not rows:
        raise CannotExamine("reads_batches: the data set is empty")
    try:
        together = subject.dataset[rows]
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise CannotExamine(f"reads_batches: {kind} does not take a list of rows ({said})") from error
    convert = importlib.import_module("torch.utils.data").default_convert
    apart = subject.collate()([subject.dataset[row] for row in rows])
    if _form(convert(together)) != _form(apart):
        raise CannotExamine(f"reads_batches: {kind} takes a list of rows, but what it returns is no batch of them")


def _form(batch: Any) -> dict[str, tuple[str, str | None, tuple[int, ...] | None]]:
    """Fields with kind, dtype and shape. Texts of any length are alike."""
    found = {}
    for field, value in flatten(batch):
        form = view_form(field, value)
        found[field] = (form.kind, form.dtype, None if form.kind in {"string", "bytes"} else form.shape)
    return found


def _of_headrace(subject: Subject, setting: Setting) -> Any:
    loader = subject.loader
    if setting.reads_batches:
        raise CannotExamine(
            "reads_batches: headrace's loader asks for all rows of a batch at once where the data set has __getitems__"
        )
    said = attribute(loader, "num_workers")
    num_workers = said if setting.num_workers is None else setting.num_workers
    if setting.runner is not None and num_workers in {0, "auto"}:
        raise CannotExamine(f"runner={setting.runner!r} needs a number of workers; num_workers is {num_workers!r}")
    if isinstance(num_workers, int):
        _check_workers(setting, num_workers)
    changes: dict[str, Any] = {"pin_memory": loader.pin_memory}
    for name in ("prefetch_factor", "persistent_workers", "pin_memory", "runner"):
        if getattr(setting, name) is not None:
            changes[name] = getattr(setting, name)
    if setting.start_method is not None:
        changes["multiprocessing_context"] = setting.start_method
    runner = changes.get("runner", attribute(attribute(loader, "_arguments"), "runner"))
    if num_workers != 0 and runner == "inline":
        changes["runner"] = "auto"
    if num_workers == 0 or runner == "threads":
        changes["memory_limit"] = None  # there is no memory that processes share
    return subject.with_workers(num_workers, **changes)


def _switched(subject: Subject, setting: Setting) -> Any:
    """Makes headrace's loader with the arguments that torch's was given, as far as torch's still knows them."""
    loader = subject.loader
    if is_headrace(loader):
        return _of_headrace(subject, dataclasses.replace(setting, loader=None))
    if not is_torch(loader):
        raise CannotExamine(f"headrace.DataLoader takes torch's arguments; {subject.kind} has others")
    if class_name(loader) != "torch.utils.data.DataLoader" and not descends_from(
        loader, "torchdata", "StatefulDataLoader"
    ):
        raise CannotExamine(
            f"{subject.kind} does more than torch's DataLoader: another import alone does not replace it"
        )
    if setting.reads_batches:
        raise CannotExamine(
            "reads_batches: headrace's loader asks for all rows of a batch at once where the data set has __getitems__"
        )
    num_workers = _num_workers(subject, setting)
    _check_workers(setting, num_workers)
    options = _order_of(subject) | {
        "num_workers": num_workers,
        "collate_fn": None if subject.has_default_collate else loader.collate_fn,
        "pin_memory": bool(loader.pin_memory) if setting.pin_memory is None else setting.pin_memory,
        "worker_init_fn": loader.worker_init_fn,
        "generator": loader.generator,
        "runner": setting.runner or "auto",
    }
    if num_workers:
        options |= {
            "timeout": loader.timeout,
            "prefetch_factor": setting.prefetch_factor or loader.prefetch_factor,
            "persistent_workers": bool(
                loader.persistent_workers if setting.persistent_workers is None else setting.persistent_workers
            ),
            "multiprocessing_context": setting.start_method or loader.multiprocessing_context,
        }
    elif setting.runner is not None:
        raise CannotExamine(f"runner={setting.runner!r} needs workers; num_workers is 0")
    headrace_loader = importlib.import_module("headrace").DataLoader
    return headrace_loader(loader.dataset, **options)


def _order_of(subject: Subject) -> dict[str, Any]:
    """Arguments of batching and order. Torch keeps `shuffle=True` as a sampler of its own."""
    loader = subject.loader
    size = attribute(loader, "batch_size")
    batches = attribute(loader, "batch_sampler")
    if size is None and batches is not None:
        return {"batch_sampler": batches}
    found: dict[str, Any] = {"batch_size": size, "drop_last": bool(loader.drop_last)}
    if subject.is_iterable:
        return found
    sampler = loader.sampler
    if is_instance(sampler, "torch.utils.data", "RandomSampler") and _is_plain(sampler):
        return found | {"shuffle": True}
    if is_instance(sampler, "torch.utils.data", "SequentialSampler"):
        return found
    return found | {"sampler": sampler}


def _is_plain(sampler: Any) -> bool:
    """True for what `shuffle=True` makes: each row once. StatefulDataLoader puts its own class in the place."""
    return not attribute(sampler, "replacement") and attribute(sampler, "_num_samples") is None


def _of_another(subject: Subject, setting: Setting) -> Any:
    if dataclasses.replace(setting, num_workers=None) != AS_IT_IS:
        other = dataclasses.replace(setting, num_workers=None)
        raise CannotExamine(f"{other.name}: {subject.kind} has no such setting that could be changed from outside")
    if setting.num_workers == subject.num_workers == 0:
        return Passes(subject) if subject.loader is None else subject.loader
    return subject.with_workers(setting.num_workers or 0)
