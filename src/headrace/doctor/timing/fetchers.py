"""Changes what makes a batch out of sample numbers (torch calls it a fetcher), and nothing else of a loader.

The copy of the loader has the user's data set, sampler, functions and class. Its workers begin with us, however they are
started: torch's main function of a worker is replaced, while they start, by an object that calls it. A forked worker has
it by inheritance, any other one by pickle. Without workers the change is made in the loop's own process, and lasts only
while a batch is fetched.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from headrace.doctor.lab import spies
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import class_name, is_instance, transform_slots

__all__ = ["Change", "Interposed", "Spies", "interpose", "rows_of", "with_change"]

_CHANGES = "_headrace_changes"
_KIND = "_headrace_kind"
"""Attribute of the copy's class: the class of the loader."""


class Change:
    """What is changed. It pickles, if workers that are not forks are to have it."""

    def begin_worker(self, worker: int, queue: Any) -> None:
        """In a worker, before anything of the user's runs there; the queue takes (number of the batch, batch)."""

    def change_fetcher(self, fetcher: Any) -> None:
        """In a worker, or without workers in the loop's process, for each pass."""

    def follow(self, iterator: Any) -> None:
        """In the loop's process, for each iterator that was made; workers have been started."""


def with_change(loader: Any, change: Change) -> Any:
    """Returns a copy of a torch DataLoader with a change; the loader itself is left as it is.

    Raises:
        CannotExamine: it is no torch DataLoader, or makes its workers in a way of its own.
    """
    torch_data: Any = importlib.import_module("torch.utils.data")
    if not is_instance(loader, "torch.utils.data", "DataLoader"):
        raise CannotExamine(
            f"a {class_name(loader)} cannot be looked into while it works; the loaders of torch and headrace can"
        )
    wrapped = vars(loader).get("base_dataloader")
    twin = copy.copy(loader)
    if wrapped is not None:  # accelerate's, which walks through the loader that it holds
        twin.__dict__["base_dataloader"] = with_change(wrapped, change)
        return twin
    kind = type(loader)
    has_changes = _CHANGES in vars(loader)
    if not has_changes and kind._get_iterator is not torch_data.DataLoader._get_iterator:
        raise CannotExamine(
            f"{class_name(loader)} starts its workers in a way of its own, so they cannot be looked into"
        )
    state = twin.__dict__
    state["_iterator"] = None  # persistent workers belong to the loader that started them
    state[_CHANGES] = (*state.get(_CHANGES, ()), change)
    if not has_changes:
        names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
        try:
            twin.__class__ = type(kind.__name__, (kind,), {**names, "_get_iterator": _get_iterator, _KIND: kind})
        except TypeError as error:  # a class that lets nobody descend from it
            raise CannotExamine(f"{class_name(loader)} cannot be looked into: {error}") from error
    return twin


def _get_iterator(loader: Any) -> Any:
    """A method of the copy's class."""
    changes = vars(loader)[_CHANGES]
    make = functools.partial(getattr(loader, _KIND)._get_iterator, loader)
    if not loader.num_workers:
        iterator = make()
        for change in changes:
            change.change_fetcher(iterator._dataset_fetcher)
    else:
        workers: Any = importlib.import_module("torch.utils.data._utils.worker")
        with mock.patch.object(workers, "_worker_loop", _WorkerLoop(workers._worker_loop, changes)):
            iterator = make()
    for change in changes:
        change.follow(iterator)
    return iterator


def interpose(holder: Any, name: str, around: Callable[..., Any]) -> None:
    """Lets calls of one object's method go through `around(method, ...)`.

    The object does not come to hold itself by that: an iterator of torch's ends its workers when nobody holds it.
    """
    held = vars(holder).get(name)
    if held is None:
        reference, function = weakref.ref(holder), getattr(type(holder), name)

        def held(*arguments: Any, **options: Any) -> Any:
            return function(reference(), *arguments, **options)

    setattr(holder, name, functools.partial(around, held))


class _WorkerLoop:
    """Stands for torch's `_worker_loop` while workers start."""

    def __init__(self, loop: Callable[..., Any], changes: tuple[Change, ...]) -> None:
        self.loop, self.changes = loop, changes

    def __call__(self, *arguments: Any) -> None:
        """Runs in the worker."""
        _be_spied()
        named = inspect.signature(self.loop).bind(*arguments).arguments
        for change in self.changes:
            change.begin_worker(named["worker_id"], named["data_queue"])
        kinds: Any = importlib.import_module("torch.utils.data")._DatasetKind
        create = kinds.create_fetcher

        def create_changed(*what: Any, **more: Any) -> Any:
            fetcher = create(*what, **more)
            for change in self.changes:
                change.change_fetcher(fetcher)
            return fetcher

        kinds.create_fetcher = staticmethod(create_changed)
        self.loop(*arguments)

    def __reduce__(self) -> Any:
        # Spies first: what is pickled after them imports the user's modules.
        return _worker_loop, (Spies(), self.changes)


def _worker_loop(_: object, changes: tuple[Change, ...]) -> _WorkerLoop:
    return _WorkerLoop(importlib.import_module("torch.utils.data._utils.worker")._worker_loop, changes)


class Spies:
    """Sets spies where it is unpickled."""

    def __reduce__(self) -> Any:
        return _be_spied, ()


def _be_spied() -> None:
    """In a worker: a fork has the spies of the process that made it."""
    if spies.installed() is None:
        spies.install(Bench(FlightRecorder.create()))


def _nothing(_: int) -> None:
    return None


class Interposed:
    """Has transforms and decoders of a data set go through functions of ours, while a batch is fetched."""

    def __init__(
        self,
        dataset: Any,
        *,
        around: Callable[[int], spies.Around | None] = _nothing,
        decoder: spies.StandIn | None = None,
    ) -> None:
        """Looks for the transforms.

        Args:
            dataset: The data set.
            around: Gives what calls of the n-th transform go through; None: it is left as it is.
            decoder: What calls of decoders go through; None: they are left as they are.
        """
        self._decoder = decoder
        self._slots = [
            (vars(holder), name, held, spies.placeholder(spies.without_spy(held), through))
            for number, (holder, name, held) in enumerate(transform_slots(dataset))
            if (through := around(number)) is not None
        ]

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """While this lasts."""
        bench = spies.installed()
        was_listening = bench is not None and bench.is_listening
        before = None
        if self._decoder is not None:
            if bench is not None:
                bench.is_listening = False
            before = spies.stand_in(self._decoder)
        for names, name, _, stand in self._slots:
            names[name] = stand
        try:
            yield
        finally:
            for names, name, held, stand in self._slots:
                if names.get(name) is stand:  # else the data set has another one by now
                    names[name] = held
            if self._decoder is not None:
                spies.stand_in(before)
                if bench is not None:
                    bench.is_listening = was_listening

    def around_fetch(self, fetcher: Any) -> None:
        """Lets it be in place whenever this fetcher makes a batch."""

        def fetch_so(fetch: Callable[[Any], Any], index: Any) -> Any:
            with self.in_place():
                return fetch(index)

        interpose(fetcher, "fetch", fetch_so)


def rows_of(
    dataset: Any, take: Callable[[Any, Callable[[], Any]], Any], take_all: Callable[[Any, Callable[[], Any]], Any]
) -> Any:
    """Returns what a fetcher has in the place of a data set with row numbers.

    Args:
        dataset: The data set.
        take: Given an index and what prepares its sample, returns the sample.
        take_all: The same for several at once, where the data set prepares them so.
    """
    together = getattr(dataset, "__getitems__", None)
    inner = getattr(dataset, "dataset", None)
    own = importlib.import_module("torch.utils.data").Subset.__getitems__
    if getattr(together, "__func__", None) is own and not callable(getattr(inner, "__getitems__", None)):
        together = None  # torch's Subset asks for one after the other then
    return _Rows(dataset, take) if not together else _RowsTogether(dataset, take, take_all)


class _Rows:
    def __init__(self, dataset: Any, take: Callable[[Any, Callable[[], Any]], Any]) -> None:
        self._dataset, self._take = dataset, take

    def __getitem__(self, index: Any) -> Any:
        return self._take(index, lambda: self._dataset[index])

    def __len__(self) -> int:
        return len(self._dataset)


class _RowsTogether(_Rows):
    def __init__(self, dataset: Any, take: Any, take_all: Any) -> None:
        super().__init__(dataset, take)
        self._take_all = take_all

    def __getitems__(self, indices: Any) -> Any:
        return self._take_all(indices, lambda: self._dataset.__getitems__(indices))
