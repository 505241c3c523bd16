"""What runs in a worker beside the user's code: it names each sample before it is prepared, and digests it afterwards.

Handed to torch in the place of `worker_init_fn` and `collate_fn`; the user's own functions are called from here.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import faulthandler
import functools
import importlib
import os
import pathlib
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.contract.view import as_array, flatten
from headrace.doctor.lab.bench import Bench
from headrace.doctor.stacks import innermost_at, is_user_code
from headrace.doctor.subject.dividing import Divider, rows_in
from headrace.doctor.subject.looking import length
from headrace.doctor.subject.walking import key_in
from headrace.doctor.walks.field_digests import digest_fields, exact_digests
from headrace.doctor.walks.generators import global_states, held_generators, held_states, set_back
from headrace.doctor.walks.journal import Journal
from headrace.errors import SampleId
from headrace.keys import derive_key

__all__ = ["HandedOver", "Note", "Observer", "Telling", "name_index", "note_sample"]

NUM_SEARCHES = 8
"""Samples after which each worker's objects are searched for generators: enough to see a stream go on."""
MESSAGE_CHARS = 300


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What goes back with each batch, for a walk whose batches are wanted."""

    one_in: int = 1
    """Digest the fields of one in so many samples, chosen by a hash of the name: the same ones under any order."""
    has_names: bool = True
    """False for a stream: what its samples were asked for by is a place, and no name."""
    freezes: bool = False
    """True: all generators are set back to the same state before each sample, those that the data set holds too."""
    wanted: str | int | None = None
    """Name of the sample whose arrays go back as well."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One sample of a batch, as it went into the collate function."""

    name: str | int | None
    """The index that was asked for; None: not known, or a stream."""
    key: SampleId | None
    """What it calls itself; None: nothing."""
    fields: dict[str, str | None] | None
    """Digests; None: not among the chosen ones."""
    is_none: bool = False
    """True for None, which data sets return for what they cannot load, and collate functions leave out."""
    arrays: dict[str, Any] | None = None
    """Its numeric fields, if it was wanted."""


@dataclasses.dataclass(frozen=True, slots=True)
class HandedOver:
    """A batch as the loader's own collate function made it, and its samples."""

    notes: list[Note]
    batch: Any
    is_at_once: bool = False
    """True: the data set was asked for all its rows at once, and made one batch of them, no list of samples."""
    undivided: str = ""
    """Why it could not be divided into the rows that were asked for; then one note stands for all. Empty: it was."""


def note_sample(sample: Any, name: str | int | None, telling: Telling) -> Note:
    """Returns what is told of one sample."""
    key = key_in(sample)
    told = name if name is not None else key
    is_chosen = telling.one_in == 1 or told is None or derive_key("one in", told) % telling.one_in == 0
    is_wanted = told is not None and told == telling.wanted
    return Note(
        name=name,
        key=key,
        fields=exact_digests(sample) if is_chosen else None,
        is_none=sample is None,
        arrays={field: array for field, value in flatten(sample) if (array := as_array(value)) is not None}
        if is_wanted
        else None,
    )


class Observer:
    """One for each walk; copied into each worker with the loader."""

    def __init__(
        self,
        folder: str,
        *,
        user_init: Callable[[int], Any] | None,
        user_collate: Callable[[Any], Any] | None,
        is_batched: bool,
        reseed: int | None = None,
        telling: Telling | None = None,
    ) -> None:
        """Notes what to call.

        Args:
            folder: Where the journals go.
            user_init: The loader's own worker_init_fn.
            user_collate: The loader's own collate function; None: it is not called (torch's own has nothing to show).
            is_batched: False for a loader that hands over single samples.
            reseed: Seed for the global generators before each sample, so that equal reads can be compared; None: leave
                them to the loader.
            telling: What to tell of each sample beside the batch that the loader's own collate function makes. None: the
                samples stay in the worker, and their number goes back.
        """
        self.folder = folder
        self._user_init, self._user_collate, self._is_batched = user_init, user_collate, is_batched
        self._reseed, self._telling = reseed, telling
        self._names: list[str | int | None] = []
        """Of the samples that were prepared for the batch in hand."""
        self._num_at_once: int | None = None
        """Rows of the batch in hand, if the data set was asked for all of them at once."""
        self._apart: list[Any] | None = None
        """Its samples, where they were also made one by one."""
        self._divide = Divider()
        self._held: list[Any] = []
        self._dataset: Any = None
        self._journal: Journal | None = None
        self._depth = 0
        self._num_ended = 0
        self._num_searches: collections.Counter[str] = collections.Counter()
        self._dump: Any = None

    # What torch calls.

    def start(self, worker_id: int) -> None:
        """The worker_init_fn."""
        self._journal = Journal(os.path.join(self.folder, f"{worker_id}.journal"))  # noqa: PTH118 - a text is at hand
        self._dump = pathlib.Path(self.folder, f"{worker_id}.dump").open("w")  # noqa: SIM115 - for the worker's life
        faulthandler.disable()  # inherited by a fork, it counts as enabled although torch has put its own handlers in place
        faulthandler.enable(self._dump, all_threads=True)
        faulthandler.register(signal.SIGUSR2, self._dump, all_threads=True)
        self._journal.write("born", pid=os.getpid())
        info = importlib.import_module("torch.utils.data").get_worker_info()
        self._dataset = info.dataset
        if self._user_init is not None:
            with self._doing("worker_init_fn"):
                self._user_init(worker_id)
        self._dataset = importlib.import_module("torch.utils.data").get_worker_info().dataset
        self._warm_up()
        hook(self._dataset, self)
        self._write("start", **self._states("start"))

    def start_here(self, dataset: Any) -> None:
        """In the place of `start` for a loader without workers. Its classes stay hooked: the process is the walk's own."""
        self._journal = Journal(os.path.join(self.folder, "0.journal"))  # noqa: PTH118 - a text is at hand
        self._dataset = dataset
        self._warm_up()
        hook(dataset, self)

    def _warm_up(self) -> None:
        """Has generators made that a data set makes with its first sample: only what is there can be set back."""
        if self._telling is not None and self._telling.freezes and self._telling.has_names:
            with contextlib.suppress(Exception):
                self._dataset[0]

    @property
    def freezes(self) -> bool:
        """True if generators are set back before each sample."""
        return self._telling is not None and self._telling.freezes

    def join(self, samples: Any) -> Any:
        """The collate_fn: the samples stay here; only their number goes back, or what `telling` asks for."""
        if self._telling is not None:
            return self._hand_over(samples, self._telling)
        number = len(samples) if self._is_batched else 1
        if self._num_ended == 0:  # a data set that cannot be looked into
            for sample in samples if self._is_batched else [samples]:
                self._write("end", index=None, fields=digest_fields(sample), wall_s=0.0, **self._states("sample"))
        if self._user_collate is not None:
            with self._doing("collate"):
                self._user_collate(samples)
        self._write("batch", number=number, **self._states("batch"))
        return number

    def _hand_over(self, samples: Any, telling: Telling) -> HandedOver:
        number, undivided = self._num_at_once, ""
        several = self._apart
        if several is None and number is not None:
            several = self._divide(samples, number)
            if several is None:
                undivided = (
                    f"{number} rows were asked for at once, and what came cannot be divided into {number} samples"
                )
                self._names, several = [str(self._names[-number:])], [samples]
        elif several is None:
            several = list(samples) if self._is_batched else [samples]
        # What was prepared for a batch that failed is left behind.
        is_known = telling.has_names and len(self._names) >= len(several)
        names = self._names[-len(several) :] if is_known else [None] * len(several)
        self._names, self._num_at_once, self._apart = [], None, None
        notes = [note_sample(sample, name, telling) for sample, name in zip(several, names, strict=True)]
        batch = samples
        if self._user_collate is not None:
            with self._doing("collate"):
                batch = self._user_collate(samples)
        self._write("batch", number=len(several))
        return HandedOver(notes, batch, number is not None and self._divide.is_joined is not False, undivided)

    def _freeze(self) -> None:
        """Sets every generator back. What a data set makes on first use is searched for in the first samples."""
        if self._num_ended <= NUM_SEARCHES:
            self._held = held_generators([self._dataset, self._user_collate])
        Bench.reseed(0, "frozen")
        for generator in self._held:
            set_back(generator, 0)

    # What the hooks call.

    @contextlib.contextmanager
    def sample(self, indices: Sequence[Any]) -> Iterator[list[Any]]:
        """Around the preparation of samples; what is put into the list is digested."""
        if self._depth:  # a sample that is made of other samples of the same data set
            yield []
            return
        self._depth += 1
        started, got = time.perf_counter(), list[Any]()
        try:
            with self._doing("sample", indices=[name_index(index) for index in indices]):
                if self._reseed is not None:
                    Bench.reseed(self._reseed, *(name_index(index) for index in indices))
                if self.freezes:
                    self._freeze()
                yield got
        finally:
            self._depth -= 1
        wall_s = time.perf_counter() - started
        if self._telling is not None and got:
            self._names += map(name_index, indices)
        for place, sample in enumerate(got):
            index = name_index(indices[place]) if place < len(indices) else None
            states = self._states("sample") if place == len(got) - 1 else {}
            self._num_ended += 1
            # For who is told of them they are digested when they are handed over.
            fields = digest_fields(sample) if self._telling is None else {}
            self._write("end", index=index, fields=fields, wall_s=wall_s / len(got), **states)

    @property
    def takes_batches(self) -> bool:
        """True if a list that the data set is asked for is a batch of rows: no loader joins what comes."""
        return self._telling is not None and self._telling.has_names and not self._is_batched

    @property
    def tells(self) -> bool:
        """True if the samples of each batch are told of."""
        return self._telling is not None

    def at_once(self, read: Callable[[Any], Any], index: Any, rows: Sequence[Any], single: Sequence[Any]) -> Any:
        """Asks the data set for all rows of a batch, whatever it makes of them.

        Args:
            read: Asks it.
            index: Asks for all.
            rows: The rows.
            single: Each of them as an index.
        """
        if self._depth:
            return read(index)
        self._num_at_once = len(rows)
        if self.freezes:  # one generator state for each sample, whatever else is in its batch
            self._apart = self._one_by_one(read, rows, single)
            if self._apart is not None and not self._divide.is_joined:
                return self._apart
            self._depth += 1
            try:
                return read(index)  # for the loader's own joining
            finally:
                self._depth -= 1
        with self.sample(rows) as got:
            samples = read(index)
            got.append(samples)
        return samples

    def _one_by_one(self, read: Callable[[Any], Any], rows: Sequence[Any], single: Sequence[Any]) -> list[Any] | None:
        found = []
        for row, index in zip(rows, single, strict=True):
            with self.sample([row]) as got:
                made = read(index)
                got.append(made)
            found += self._divide(made, 1) or []
        return found if len(found) == len(rows) else None

    def note(self, at: str) -> None:
        """Writes an event that has nothing to it."""
        self._write(at)

    @property
    def dataset(self) -> Any:
        """The worker's copy."""
        return self._dataset

    def _write(self, at: str, **fields: Any) -> None:
        if self._journal is not None:
            self._journal.write(at, **fields)

    @contextlib.contextmanager
    def _doing(self, stage: str, **fields: Any) -> Iterator[None]:
        """Around the user's code: what is begun is written first; what is raised is described."""
        self._write("begin", stage=stage, **fields)
        try:
            yield
        except StopIteration:
            raise
        except BaseException as error:
            self._write("error", stage=stage, **fields, **describe_error(error))
            raise
        self._write("done", stage=stage)

    def _states(self, at: str) -> dict[str, Any]:
        if self._num_searches[at] > NUM_SEARCHES:
            return {}
        self._num_searches[at] += 1
        held = held_states(dataset=self._dataset, collate_fn=self._user_collate)
        return {"states": {**global_states(), **held}}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_journal": None, "_dump": None, "_dataset": None}


def name_index(index: Any) -> str | int:
    """An index as JSON has it: numbers stay, everything else becomes its text."""
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        return index if isinstance(index, str) else repr(index)
    return int(index.__index__())


def describe_error(error: BaseException) -> dict[str, Any]:
    """What an exception is here, and what torch makes of it on the way to the training process."""
    try:
        message = str(error).partition("\n")[0][:MESSAGE_CHARS]
    except Exception:  # a __str__ of the user's own that fails
        message = ""
    return {
        "error_type": type(error).__name__,
        "message": message,
        "error_at": innermost_at(error),
        "arrives_as": _arrival(error),
    }


def _arrival(error: BaseException) -> str | None:
    """The type under which torch raises it again; None: it cannot be sent at all, and the loader waits for ever."""
    if not isinstance(error, Exception):
        return type(error).__name__
    wrapper = importlib.import_module("torch._utils").ExceptionWrapper(
        exc_info=(type(error), error, error.__traceback__), where="in a worker"
    )
    try:
        pickle.dumps(wrapper)
    except Exception:
        return None
    try:
        wrapper.reraise()
    except BaseException as again:
        return type(again).__name__
    return type(error).__name__


def hook(dataset: Any, observer: Observer) -> None:
    """Lets the observer see each sample that is asked of this object. Built-in types cannot be hooked, and are not."""
    kind = type(dataset)
    names = {parent.__name__ for parent in kind.__mro__}
    if "IterDataPipe" in names:  # watches over its own __iter__
        return
    wrappers: dict[str, Callable[..., Any]] = {}
    if "IterableDataset" in names:
        wrappers["__iter__"] = _hooked_iter(kind.__iter__, dataset, observer)
    else:
        if hasattr(kind, "__getitem__"):
            wrappers["__getitem__"] = _hooked_item(kind.__getitem__, dataset, observer)
        if callable(getattr(kind, "__getitems__", None)):
            wrappers["__getitems__"] = _hooked_items(kind, dataset, observer)
    for name, wrapper in wrappers.items():
        with contextlib.suppress(TypeError, AttributeError):
            setattr(kind, name, wrapper)


def _hooked_item(original: Callable[..., Any], dataset: Any, observer: Observer) -> Callable[..., Any]:
    @functools.wraps(original)
    def observed(self: Any, index: Any) -> Any:
        if self is not dataset:
            return original(self, index)
        if observer.takes_batches and (asked := rows_in(index, length(self))) is not None:
            return observer.at_once(functools.partial(original, self), index, *asked)
        with observer.sample([index]) as got:
            sample = original(self, index)
            got.append(sample)
        return sample

    return observed


def _hooked_items(kind: Any, dataset: Any, observer: Observer) -> Callable[..., Any]:
    original = kind.__getitems__
    code = getattr(original, "__code__", None)
    # Torch's own Subset asks one by one unless what it wraps takes several; then each sample is named for itself.
    is_loop = code is not None and not is_user_code(code.co_filename) and kind.__name__ == "Subset"

    @functools.wraps(original)
    def observed(self: Any, indices: Any) -> Any:
        if self is not dataset:
            return original(self, indices)
        if is_loop and not callable(getattr(self.dataset, "__getitems__", None)):
            return [self[index] for index in indices]
        if observer.tells:
            rows = list(indices)
            return observer.at_once(functools.partial(original, self), indices, rows, [[row] for row in rows])
        with observer.sample(list(indices)) as got:
            samples = original(self, indices)
            got.extend(samples)
        return samples

    return observed


def _hooked_iter(original: Callable[..., Any], dataset: Any, observer: Observer) -> Callable[..., Any]:
    @functools.wraps(original)
    def observed(self: Any) -> Iterator[Any]:
        if self is not dataset:
            yield from original(self)
            return
        observer.note("pass")
        place = 0
        stream = iter(original(self))
        while True:
            with observer.sample([place]) as got:
                try:
                    sample = next(stream)
                except StopIteration:
                    break
                got.append(sample)
            yield sample
            place += 1
        observer.note("exhausted")

    return observed
