"""A handful of a data set's own samples, and what its transforms, decoders and files gave on the way to them.

They are learnt in one worker of a copy of the loader, so the user's data set opens nothing in this process; the user's
sampler and generators are left where they are.
"""

from __future__ import annotations

import bisect
import builtins
import collections
import contextlib
import copy
import dataclasses
import functools
import importlib
import io
import itertools
import os
import pathlib
import pickle
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.lab.bench import Bench
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute, is_instance
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.timing.fetchers import Change, Interposed, interpose, rows_of, with_change

__all__ = ["NUM_VARIANTS", "Memory", "Remembered", "Variants", "copied", "files_through", "learn"]

NUM_REMEMBERED = 8
"""Enough for lengths to vary; more would cost the time of preparing them."""
NUM_VARIANTS = 2
"""Batches of each length that are remembered, in each worker: those are made as ever, all later ones cost nothing."""
LEARNING_S = 4.0
"""After that, those that are there are enough."""
TIMEOUT_S = 60.0
MOST_DRAWN = 20_000
"""Indices that are drawn to choose among: a pass over them costs milliseconds."""
MAX_FILE_BYTES = 32 * 2**20
"""Longer files hold many samples and are read in parts."""


@dataclasses.dataclass(slots=True)
class Remembered:
    """One sample."""

    index: Any = None
    sample: Any = None
    transforms: dict[int, list[Any]] = dataclasses.field(default_factory=dict)
    """By the number of the transform: what each call gave."""
    decoders: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    """By the name of the decoder: what each call gave; `NotKept` where it cannot be handed on twice."""
    parts: bool = False
    """True: a decoder takes parts out of a file that stays open, so reading and decoding are one."""
    files: dict[str, list[bytes | None]] = dataclasses.field(default_factory=dict)
    """Contents of the files that Python opened, in order, by who opened them: `decoders`, or `dataset` for all others.
    None: too long, or no file."""
    is_joined: bool = False
    """True: the data set gives finished batches where it is asked for several samples."""


class NotKept:
    """In the place of what cannot be kept: a file that is opened, an image that was never loaded."""


class Memory:
    """Hands on what is remembered: for each index always the same, neighbours sharing two, so that lengths vary as before."""

    def __init__(self, several: list[Remembered]) -> None:
        self.has_numbers = all(isinstance(one.index, int) for one in several)
        self.several = sorted(several, key=lambda one: one.index) if self.has_numbers else several
        self._indices = [one.index for one in self.several] if self.has_numbers else []
        self._num_asked = 0

    def of(self, index: Any) -> Remembered:
        """Returns what stands for a sample; for what has no row number, one after the other."""
        if self._indices and hasattr(index, "__index__"):
            number = int(index.__index__())
            place = min(bisect.bisect_left(self._indices, number), len(self._indices) - 1)
            return self.several[min(place // 2 * 2 + number % 2, len(self.several) - 1)]
        self._num_asked += 1
        return self.several[self._num_asked % len(self.several)]


class Variants:
    """The first few results for each length, and from then on those."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Any]] = {}
        self._num_asked = 0

    def of(self, length: int, make: Callable[[], Any]) -> Any:
        """Returns one of the results for a length."""
        kept = self._kept.setdefault(length, [])
        if len(kept) < NUM_VARIANTS:
            kept.append(make())
            return kept[-1]
        self._num_asked += 1
        return kept[self._num_asked % NUM_VARIANTS]


def copied(value: Any, *, leaves: bool) -> Any:
    """Returns a copy of the containers of a sample, so that nobody who changes one changes what is remembered.

    Args:
        value: A sample, or a part of one.
        leaves: True: tensors, arrays and images are copied as well.
    """
    if isinstance(value, tuple):
        parts = [copied(part, leaves=leaves) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts) if type(value) is tuple else value
    if type(value) is list:
        return [copied(part, leaves=leaves) for part in value]
    if type(value) is dict:
        return {name: copied(part, leaves=leaves) for name, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, copied(getattr(value, field.name), leaves=leaves))
        return made
    if isinstance(value, (dict, collections.UserDict)):  # of a class of its own, such as tokenizers give
        return copy.copy(value)
    if not leaves:
        return value
    if is_instance(value, "torch", "Tensor"):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if is_instance(value, "numpy", "ndarray"):
        return value.copy()
    if is_instance(value, "PIL.Image", "Image"):
        made = value.copy()
        made.format = value.format
        return made
    return copy.copy(value) if isinstance(value, (bytearray, set)) else value


# Learning.


def learn(loader: Any, bench: Bench) -> Memory:
    """Has a worker of a copy of the loader prepare a handful of samples, and remembers them.

    Raises:
        CannotExamine: it could not, or there is none.
    """
    loader = vars(loader).get("base_dataloader", loader)
    joins = attribute(loader, "batch_sampler") is not None
    chosen: list[Any] = [0] * NUM_REMEMBERED if is_stream(loader) else _choose(loader)
    changes: dict[str, Any] = {"batch_sampler": [[index] for index in chosen]} if joins else {"sampler": chosen}
    if is_stream(loader) and not joins:
        changes = {}
    twin = rebuild(loader, num_workers=1, persistent_workers=False, timeout=TIMEOUT_S, **changes)
    twin = with_change(twin, _Learning())
    with _generators_unchanged(loader):
        several, failure = _prepare(twin, bench)
    if not several:
        told = "the data set gave none" if failure is None else f"{type(failure).__name__}: {_last_line(failure)}"
        raise CannotExamine(f"no sample could be kept to be handed on again: {told}") from failure
    return Memory(several)


def _prepare(twin: Any, bench: Bench) -> tuple[list[Remembered], Exception | None]:
    """What the worker could prepare, and the last failure."""
    several: list[Remembered] = []
    failure: Exception | None = None
    iterator = None
    began = time.monotonic()
    try:
        with _waiting(bench, "start of workers"):
            iterator = twin._get_iterator()
        for _ in range(NUM_REMEMBERED):
            try:
                with _waiting(bench, "waiting for workers"):
                    several += pickle.loads(next(iterator))
            except StopIteration:
                break
            except Exception as error:  # this sample fails; others may not
                failure = error
                if isinstance(error, RuntimeError) and str(error).startswith("DataLoader "):
                    break  # the worker has ended, or takes too long
            if several and time.monotonic() - began > LEARNING_S:
                break
    except Exception as error:  # what cannot be sent to a worker
        failure = error
    finally:
        if iterator is not None:
            iterator._shutdown_workers()
    return several, failure


@contextlib.contextmanager
def _waiting(bench: Bench, stage: str) -> Iterator[None]:
    with bench.holding(None, None, stage=stage):
        bench.stop_listening()
        yield


def _last_line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2]


def is_stream(loader: Any) -> bool:
    """True if samples come in the data set's order, and have no row number."""
    return is_instance(attribute(loader, "dataset"), "torch.utils.data", "IterableDataset")


def _choose(loader: Any) -> list[Any]:
    """Indices as the loader's sampler draws them, in neighbouring pairs from everywhere."""
    batches = attribute(loader, "batch_sampler")
    with _generators_unchanged(loader):
        try:
            sampler = copy.deepcopy(batches if batches is not None else loader.sampler)
            if batches is not None:
                drawn = list(itertools.islice((index for batch in sampler for index in batch), MOST_DRAWN))
            else:
                drawn = list(itertools.islice(sampler, MOST_DRAWN))
        except Exception:  # a sampler that cannot be copied: the rows themselves
            drawn = list(range(min(len(loader.dataset), MOST_DRAWN)))
    if len(drawn) <= NUM_REMEMBERED:
        return drawn
    pairs = NUM_REMEMBERED // 2
    starts = [round(place * (len(drawn) - 2) / (pairs - 1)) for place in range(pairs)]
    return [drawn[start + offset] for start in starts for offset in (0, 1)]


@contextlib.contextmanager
def _generators_unchanged(loader: Any) -> Iterator[None]:
    """Sets the generators that drawing and starting workers draw from back to where they were."""
    torch: Any = importlib.import_module("torch")
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    held = [
        one
        for one in (attribute(loader, "generator"), attribute(attribute(loader, "sampler"), "generator"))
        if isinstance(one, torch.Generator)
    ]
    states = random.getstate(), torch.get_rng_state(), numpy_random and numpy_random.get_state()
    held_states = [one.get_state() for one in held]
    try:
        yield
    finally:
        random.setstate(states[0])
        torch.set_rng_state(states[1])
        if numpy_random is not None:
            numpy_random.set_state(states[2])
        for generator, state in zip(held, held_states, strict=True):
            generator.set_state(state)


class _Learning(Change):
    """In a worker: remembers each sample, and hands over what pickles."""

    def __init__(self) -> None:
        self._now = Remembered()
        self._images: list[tuple[str, int, Any]] = []
        self._done: list[Remembered] = []
        self._is_decoding = False

    def change_fetcher(self, fetcher: Any) -> None:
        """Listens to everything."""
        inside = Interposed(
            fetcher.dataset, around=lambda number: functools.partial(self._transform, number), decoder=self._decode
        )
        inside.around_fetch(fetcher)
        if hasattr(fetcher, "dataset_iter"):
            stream = fetcher.dataset_iter
            fetcher.dataset_iter = iter(lambda: self._take(None, stream.__next__), object())
        else:
            fetcher.dataset = rows_of(fetcher.dataset, self._take, self._take_all)
        fetcher.collate_fn = self._hand_over

        def fetch_with_files(fetch: Callable[[Any], Any], index: Any) -> Any:
            with files_through(self._open):
                return fetch(index)

        interpose(fetcher, "fetch", fetch_with_files)

    def _take(self, index: Any, prepare: Callable[[], Any]) -> Any:
        self._begin(index)
        sample = prepare()
        self._end(sample)
        return sample

    def _take_all(self, indices: Any, prepare: Callable[[], Any]) -> Any:
        self._begin(indices[0])
        samples = prepare()
        self._now.is_joined = not (isinstance(samples, list) and len(samples) == len(indices))
        self._end(samples if self._now.is_joined else samples[0])
        return samples

    def _begin(self, index: Any) -> None:
        plain = index.__index__() if hasattr(index, "__index__") else index
        self._now, self._images = Remembered(index=plain), []

    def _end(self, sample: Any) -> None:
        for name, place, image in self._images:
            with contextlib.suppress(Exception):  # never loaded, and its file is closed by now
                self._now.decoders[name][place] = copied(image, leaves=True)
        self._now.sample = sample
        self._done.append(self._now)

    def _hand_over(self, _: Any) -> bytes:
        done, self._done = self._done, []
        try:
            return pickle.dumps(done)
        except Exception:
            for one in done:  # what happened on the way is worth less than the sample
                one.transforms, one.decoders, one.files = {}, {}, {}
            return pickle.dumps(done)

    def _transform(self, number: int, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        made = function(*arguments, **options)
        self._now.transforms.setdefault(number, []).append(copied(made, leaves=True))
        return made

    def _decode(self, original: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        first = arguments[0] if arguments else None
        if self._is_decoding:
            return original(*arguments, **options)
        self._is_decoding = True
        try:
            made = original(*arguments, **options)
        finally:
            self._is_decoding = False
        if is_instance(first, "PIL.ImageFile", "ImageFile"):  # the pixels of an image that was opened before
            for name, place, image in self._images:
                if image is first:
                    self._now.decoders[name][place] = copied(image, leaves=True)
            return made
        results = self._now.decoders.setdefault(decoder_name(original), [])
        if is_instance(made, "PIL.Image", "Image"):
            self._images.append((decoder_name(original), len(results), made))
            results.append(NotKept())
        else:
            results.append(copied(made, leaves=True) if _can_be_kept(made) else NotKept())
            self._now.parts = self._now.parts or original.__name__ == "__getitem__"
        return made

    def _open(self, original: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        opened = original(*arguments, **options)
        content = None
        with contextlib.suppress(OSError, TypeError, ValueError):
            path = pathlib.Path(os.fsdecode(arguments[0] if arguments else options["file"]))
            if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                with original(path, "rb") as file:
                    content = file.read()
        self._now.files.setdefault("decoders" if self._is_decoding else "dataset", []).append(content)
        return opened

    def __reduce__(self) -> Any:
        return _Learning, ()


def decoder_name(original: Any) -> str:
    """Under which results of a decoder are kept."""
    return f"{getattr(original, '__module__', '')}.{getattr(original, '__qualname__', '')}"


def _can_be_kept(value: Any) -> bool:
    """True for data; False for open files and the like, of which each caller needs its own."""
    if isinstance(value, (tuple, list)):
        return all(map(_can_be_kept, value))
    if isinstance(value, dict):
        return all(map(_can_be_kept, value.values()))
    return isinstance(value, (int, float, complex, str, bytes, bytearray)) or any(
        is_instance(value, module, name)
        for module, name in (("numpy", "ndarray"), ("numpy", "generic"), ("torch", "Tensor"))
    )


@contextlib.contextmanager
def files_through(around: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> Iterator[None]:
    """Lets opening a file to be read go through a function, while this lasts, for all who open it through Python."""
    original = builtins.open

    def opening(*arguments: Any, **options: Any) -> Any:
        mode = options.get("mode", arguments[1] if len(arguments) > 1 else "r")
        source = arguments[0] if arguments else options.get("file")
        if not isinstance(mode, str) or set(mode) & set("wax+") or not isinstance(source, (str, bytes, os.PathLike)):
            return original(*arguments, **options)
        return around(original, arguments, options)

    builtins.open = io.open = opening
    try:
        yield
    finally:
        builtins.open = io.open = original
