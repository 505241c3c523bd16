"""Holds any loader or data set by one handle. The only file of the doctor that knows torch and foreign data sets.

Torch is looked up, not imported: a target of another kind is examined without waiting for torch.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from headrace.contract import Contract
from headrace.doctor.stacks import is_user_code
from headrace.engine import collate as headrace_collate
from headrace.engine.plan import Plan
from headrace.errors import ConfigurationError, SampleId, SourceError, TargetError

__all__ = ["Subject"]

Enter = Callable[[str], None]
"""Called with the name of a stage when a sample enters it."""

_SLOTS = ("transforms", "transform", "target_transform")
"""Attributes that torchvision and those who follow it give their transforms; `transforms` calls the other two."""
_MAX_DEPTH = 8
"""Wrappers around a data set that are looked through."""


class Subject:
    """One loader or data set, and what can be asked of it. Asking loads nothing, `read` and `stream` apart."""

    def __init__(self, target: Any) -> None:
        self.loader: Any = target if _is_loader(target) else None
        self.dataset: Any = target if self.loader is None else self.loader.dataset
        self.is_iterable = _is_iterable(self.dataset)
        self._plan = None if self.is_iterable else self._make_plan()
        self.siblings: Mapping[str, Subject] = {}
        """Every loader of TARGET by name, this one among them: train, val, ...; one alone has the empty name."""

    def _make_plan(self) -> Plan:
        """Ids, paths and classes are what `headrace.DataLoader` says they are; nothing is read by it."""
        try:
            return Plan.of(self.dataset)
        except (ConfigurationError, SourceError) as error:
            can = "torch and headrace DataLoaders, data sets with __getitem__ and __len__, torch IterableDatasets"
            raise TargetError(
                f"TARGET is a {self.kind}, which cannot be examined: {error.what}",
                why=error.why,
                do=[*error.do, f"examined today: {can}"],
            ) from None

    # What it says of itself.

    @property
    def kind(self) -> str:
        """Class of the loader or data set, with its module."""
        return _class_name(self.dataset if self.loader is None else self.loader)

    @property
    def dataset_kind(self) -> str:
        """Class of the data set, with its module."""
        return _class_name(self.dataset)

    @property
    def num_samples(self) -> int | None:
        """`len(dataset)`; None: it has none, or fails."""
        return _length(self.dataset)

    @property
    def num_batches(self) -> int | None:
        """`len(loader)`; None: no loader, or it has none."""
        return None if self.loader is None else _length(self.loader)

    @property
    def batch_size(self) -> int | None:
        """None: no loader, no batching, or a batch sampler of the user's own."""
        size = getattr(self.loader, "batch_size", None)
        return size if isinstance(size, int) else None

    @property
    def joins_samples(self) -> bool:
        """False for a loader that hands over single samples (`batch_size=None`)."""
        if self.loader is None:
            return True
        return self.batch_size is not None or getattr(self.loader, "batch_sampler", None) is not None

    @property
    def drop_last(self) -> bool:
        """True if the incomplete last batch is left out."""
        return bool(getattr(self.loader, "drop_last", False))

    @property
    def num_workers(self) -> int:
        """Worker processes; 0 = in the caller, and for a bare data set."""
        count = getattr(self.loader, "num_workers", 0)
        return count if isinstance(count, int) else 0

    @property
    def contract(self) -> Contract | None:
        """The contract that the loader or the data set carries; None if there is none."""
        carried = (_attribute(holder, "contract") for holder in (self.loader, self.dataset))
        return next((found for found in carried if isinstance(found, Contract)), None)

    def classes(self) -> tuple[int, str] | None:
        """Returns the number of classes and who says so; None if nobody does."""
        for dataset in _layers(self.dataset):
            for name in ("classes", "class_to_idx"):
                found = _attribute(dataset, name)
                if isinstance(found, (Sequence, dict)) and not isinstance(found, str) and len(found):
                    return len(found), f"{type(dataset).__name__}.{name}"
            count = _attribute(dataset, "num_classes")
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return count, f"{type(dataset).__name__}.num_classes"
        return None

    # Samples.

    def sample_id(self, index: int) -> SampleId:
        """Returns the identity of a sample: the data set's own word, else the row number."""
        return index if self._plan is None else self._plan.sample_id(index)

    def locate(self, index: int) -> str | None:
        """Returns what a sample is read from, where the data set keeps it in one of the usual ways."""
        return None if self._plan is None else self._plan.locate(index)

    def read(self, index: int, enter: Enter | None = None) -> Any:
        """Returns one sample, prepared exactly as the loader has it prepared.

        A plan says its own stages through `enter`. Torch's loader prefers `__getitems__` where a data set has it.
        """
        if self._plan is not None and self._plan is self.dataset:
            return self._read_plan(self._plan, index, enter)
        if self.loader is not None and self.joins_samples and callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__([index])[0]
        return self.dataset[index]

    @staticmethod
    def _read_plan(plan: Plan, index: int, enter: Enter | None) -> Any:
        (record,) = plan.read_many([index])
        return plan.apply_stages(
            record,
            sample_id=plan.sample_id(index),
            seed=0,
            epoch=0,
            enter=None if enter is None else lambda stage: enter(stage.name),
        )

    def transform_slots(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """Yields (holder, attribute, function) for each transform that a data set, or one inside it, keeps for itself."""
        for dataset in _layers(self.dataset):
            for name in _SLOTS:
                held = getattr(dataset, "__dict__", {}).get(name)
                if callable(held):
                    yield dataset, name, held

    # Batches.

    def collate(self) -> Callable[[list[Any]], Any]:
        """Returns the function that joins samples; torch's default for a bare data set (imports torch)."""
        found = getattr(self.loader, "collate_fn", None)
        collate: Callable[[list[Any]], Any] = found if callable(found) else _torch_data().default_collate
        return collate

    @property
    def collate_name(self) -> str:
        """Name of the collate function, with file and line if it is the user's own."""
        found = getattr(self.loader, "collate_fn", None)
        return "default_collate" if found is None else _function_name(found)

    @property
    def has_default_collate(self) -> bool:
        """True for torch's default rules, under torch's name or ours."""
        found = getattr(self.loader, "collate_fn", None)
        is_ours = headrace_collate.is_ours(found)
        return found is None or is_ours or getattr(found, "__module__", "").startswith("torch.utils.data")

    # Streams.

    def stream(self, num_workers: int, tag: Callable[[Any], Any]) -> Iterator[Any]:
        """Walks an iterable data set with the loader's own worker settings; yields `tag(sample)` made in the worker.

        Close the iterator to end the workers.
        """
        options: dict[str, Any] = {}
        if num_workers and self.num_workers:
            names = ("worker_init_fn", "multiprocessing_context", "prefetch_factor")
            options = {name: getattr(self.loader, name, None) for name in names}
        loader = _torch_data().DataLoader(
            self.dataset, batch_size=None, collate_fn=tag, num_workers=num_workers, **options
        )
        return iter(loader)


def _torch_data() -> ModuleType:
    return importlib.import_module("torch.utils.data")


def _is_instance(value: Any, module: str, name: str) -> bool:
    """Isinstance without the import: nothing is an instance of a class of a module that nobody has imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _is_loader(target: Any) -> bool:
    return _is_instance(target, "torch.utils.data", "DataLoader") or _is_instance(
        target, "headrace.engine.loader", "DataLoader"
    )


def _is_iterable(dataset: Any) -> bool:
    return _is_instance(dataset, "torch.utils.data", "IterableDataset")


def _layers(dataset: Any) -> Iterator[Any]:
    """Yields a data set and those inside it: Subset and the like (`dataset`), ConcatDataset (`datasets`)."""
    pending, seen = [dataset], set[int]()
    while pending and len(seen) < _MAX_DEPTH:
        one = pending.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = _attribute(one, "datasets")
        pending += [_attribute(one, "dataset"), *(inner if isinstance(inner, (list, tuple)) else ())]


def _attribute(holder: Any, name: str) -> Any:
    """An attribute, or None: a property of the user's own may raise anything."""
    try:
        return getattr(holder, name, None)
    except Exception:
        return None


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except Exception:
        return None


def _class_name(value: Any) -> str:
    kind = type(value)
    # Torch documents its classes under the folder, not under the file in which they stand.
    module = "torch.utils.data" if kind.__module__.startswith("torch.utils.data.") else kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _function_name(function: Any) -> str:
    """The name of a function, with file and line if it is the user's own."""
    inner = inspect.unwrap(getattr(function, "func", function))  # functools.partial
    name = (getattr(inner, "__qualname__", None) or type(inner).__qualname__).rpartition("<locals>.")[2]
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    if code is not None and is_user_code(code.co_filename):
        return f"{name} ({pathlib.Path(code.co_filename).name}:{code.co_firstlineno})"
    return name
