"""What a loader could do if a stage cost nothing: a copy that hands on what the stage made before. Of torch here.

Everything behind the stage gets the same types and shapes, and works as before. What is handed on is the data set's own:

    sample             samples                                      without reading, decoding, transforms
    transform          what the transforms of the data set gave     reads and decodes still
    decode             what decoders gave                           reads still, and transforms
    read               contents of files                            decodes still
    collate            batches of that length                       samples are still prepared
    handover           batches of that length, kept in the loop     workers make everything, and send a token

Nothing in the place of a stage is free: a look-up, and a copy where someone behind could change what is remembered.
"""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.doctor.lab import spies
from headrace.doctor.lab.bench import Bench
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute, class_name, is_headrace, is_instance, length
from headrace.doctor.timing.fetchers import Change, Interposed, interpose, rows_of, with_change
from headrace.doctor.timing.knock_out_tasks import without_task_stages
from headrace.doctor.timing.remembered import (
    NUM_VARIANTS,
    Memory,
    NotKept,
    Variants,
    copied,
    decoder_name,
    files_through,
    is_stream,
    learn,
)
from headrace.doctor.timing.timed import Stage

__all__ = ["without_stages"]

NOTHING_HEARD = "nothing that reads or decodes could be heard in its data set; only `sample` can be left out"


NO_TRANSFORM = "its data set keeps no transform in `transform`, `transforms` or `target_transform`"


def without_stages(subject: Subject, loader: Any, stages: Sequence[Stage], bench: Bench) -> Any:
    """Returns a copy of a loader of torch or headrace in which stages cost nothing; the loader itself is left as it is.

    A stream that does not tell its length goes on without end when its samples are left out: leave it.

    Args:
        subject: What the loader is of.
        loader: The user's loader, or a copy of it with something changed.
        stages: What shall cost nothing. `sample` holds read, decode and transform.
        bench: The deadline of preparing the samples that are remembered runs on it.

    Raises:
        CannotExamine: it cannot be done without one of them; the message says why.
    """
    wanted = set(stages)
    if wanted - {"read", "decode", "transform", "sample", "collate", "handover"}:
        raise CannotExamine("copying to the device is no stage of the loader")
    if is_headrace(loader):
        return without_task_stages(loader, stages)
    if not is_instance(loader, "torch.utils.data", "DataLoader"):
        raise CannotExamine(f"a {class_name(loader)} cannot do without a stage; the loaders of torch and headrace can")
    joins = attribute(loader, "batch_sampler") is not None
    if "collate" in wanted and not joins:
        raise CannotExamine("the loader joins nothing (batch_size=None), so there is nothing to leave out")
    if "handover" in wanted and not loader.num_workers:
        raise CannotExamine("without workers nothing is handed over")
    if "sample" not in wanted and wanted & {"read", "decode"} and not loader.num_workers and spies.installed() is None:
        raise CannotExamine("nobody listens to decoders in this process; with workers it can be done")
    if "transform" in wanted and not subject.is_iterable and next(subject.transform_slots(), None) is None:
        raise CannotExamine(NO_TRANSFORM)  # known before samples are prepared
    if wanted & {"sample", "read", "decode", "transform"}:
        memory = learn(loader, bench)
        if "sample" in wanted:
            # Torch's own joining makes something new of samples; others may hand them on, or change them.
            copies = not (joins and subject.has_default_collate)
            loader = with_change(loader, _NoSamples(memory, copies=copies, num_all=_length_of_stream(loader)))
        else:
            loader = with_change(loader, _Replay(memory, _possible(wanted, memory)))
    if "collate" in wanted:
        loader = with_change(loader, _NoCollate())
    if "handover" in wanted:
        loader = with_change(loader, _NoHandover())
    return loader


def _length_of_stream(loader: Any) -> int | None:
    return length(attribute(loader, "dataset")) if is_stream(loader) else None


def _possible(wanted: set[Stage], memory: Memory) -> frozenset[Stage]:
    several = memory.several
    if "transform" in wanted and not any(one.transforms for one in several):
        raise CannotExamine(NO_TRANSFORM)
    if "decode" in wanted:
        kept = [made for one in several for results in one.decoders.values() for made in results]
        if not any(not isinstance(made, NotKept) for made in kept):
            raise CannotExamine(NOTHING_HEARD)
        if "read" not in wanted and any(one.parts for one in several):
            raise CannotExamine(
                "its data set takes parts of a file that stays open: reading and decoding are one there"
            )
    if "read" in wanted and "decode" not in wanted and not any(any(one.files.values()) for one in several):
        raise CannotExamine("its data set opens no file through Python, so what it reads cannot be handed on")
    return frozenset(wanted & {"read", "decode", "transform"})


class _Source(Change):
    """Knows for which samples what is made."""

    def change_fetcher(self, fetcher: Any) -> None:
        if hasattr(fetcher, "dataset_iter"):
            fetcher.dataset_iter = self.stream(fetcher)
        else:
            fetcher.dataset = rows_of(fetcher.dataset, self.take, self.take_all)

    def stream(self, fetcher: Any) -> Iterator[Any]:
        """In the place of the iterator of a stream."""
        raise NotImplementedError

    def take(self, index: Any, prepare: Callable[[], Any]) -> Any:
        """In the place of a sample of the data set."""
        raise NotImplementedError

    def take_all(self, indices: Any, prepare: Callable[[], Any]) -> Any:
        """In the place of several."""
        raise NotImplementedError


class _NoSamples(_Source):
    """Samples are remembered ones."""

    def __init__(self, memory: Memory, *, copies: bool, num_all: int | None) -> None:
        self._memory, self._copies, self._num_all = memory, copies, num_all
        self._joined = Variants()

    def stream(self, fetcher: Any) -> Iterator[Any]:  # noqa: ARG002 - nothing is taken of the real one
        """As long as this worker's share, or without end."""
        info = importlib.import_module("torch.utils.data").get_worker_info()
        worker, num_workers = (info.id, info.num_workers) if info is not None else (0, 1)
        share = None if self._num_all is None else len(range(worker, self._num_all, num_workers))
        places = itertools.count() if share is None else iter(range(share))
        return (self._one(place) for place in places)

    def _one(self, index: Any) -> Any:
        return copied(self._memory.of(index).sample, leaves=self._copies)

    def take(self, index: Any, prepare: Callable[[], Any]) -> Any:
        if isinstance(index, list):  # a whole batch at once
            return copied(self._joined.of(len(index), prepare), leaves=True)
        return self._one(index)

    def take_all(self, indices: Any, prepare: Callable[[], Any]) -> Any:
        if self._memory.several[0].is_joined:
            return copied(self._joined.of(len(indices), prepare), leaves=self._copies)
        return [self._one(index) for index in indices]


class _Replay(_Source):
    """The data set works; what it calls is answered from memory."""

    def __init__(self, memory: Memory, stages: frozenset[Stage]) -> None:
        self._memory, self._stages = memory, stages
        self._coming: dict[Any, Iterator[Any]] = {}
        self._is_decoding = False

    def change_fetcher(self, fetcher: Any) -> None:
        def around(number: int) -> Any:
            return functools.partial(self._transform, number) if "transform" in self._stages else None

        decoder = self._decode if self._stages & {"read", "decode"} else None
        Interposed(fetcher.dataset, around=around, decoder=decoder).around_fetch(fetcher)
        super().change_fetcher(fetcher)
        if "read" in self._stages:

            def fetch_without_files(fetch: Callable[[Any], Any], index: Any) -> Any:
                with files_through(self._open):
                    return fetch(index)

            interpose(fetcher, "fetch", fetch_without_files)

    def stream(self, fetcher: Any) -> Iterator[Any]:
        inner = fetcher.dataset_iter
        return iter(lambda: self.take(None, inner.__next__), object())

    def take(self, index: Any, prepare: Callable[[], Any]) -> Any:
        return self.take_all(index if isinstance(index, list) else [index], prepare)

    def take_all(self, indices: Any, prepare: Callable[[], Any]) -> Any:
        several = [self._memory.of(index) for index in indices]
        coming: dict[Any, list[Any]] = {}
        for one in several:
            for key, results in (*one.transforms.items(), *one.decoders.items(), *one.files.items()):
                coming.setdefault(key, []).extend(results)
        self._coming = {key: itertools.cycle(results) for key, results in coming.items() if results}
        try:
            return prepare()
        finally:
            self._coming = {}

    def _transform(self, number: int, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        results = self._coming.get(number)
        return function(*arguments, **options) if results is None else copied(next(results), leaves=True)

    def _decode(self, original: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        results = self._coming.get(decoder_name(original)) if "decode" in self._stages else None
        result = NotKept() if results is None else next(results)
        if not isinstance(result, NotKept):
            if "read" not in self._stages:
                _read_source((*arguments, *options.values()))
            return copied(result, leaves=True)
        was_decoding, self._is_decoding = self._is_decoding, True
        try:
            return original(*arguments, **options)
        finally:
            self._is_decoding = was_decoding

    def _open(self, original: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        contents = self._coming.get("decoders" if self._is_decoding else "dataset")
        content = None if contents is None else next(contents)
        if content is None:
            return original(*arguments, **options)
        mode = options.get("mode", arguments[1] if len(arguments) > 1 else "r")
        file = _Contents(content)
        file.name = os.fsdecode(arguments[0] if arguments else options["file"])
        return file if "b" in mode else io.TextIOWrapper(file, encoding=options.get("encoding"))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_coming": {}}


class _Contents(io.BytesIO):
    """Contents of a file, under its name."""

    name = ""
    _file: io.FileIO | None = None

    def fileno(self) -> int:
        """Of the file itself: whoever maps it into memory needs it."""
        if self._file is None:
            self._file = io.FileIO(self.name)
        return self._file.fileno()


def _read_source(given: Sequence[Any]) -> None:
    """Reads what a decoder would have read."""
    for source in given:
        if isinstance(source, (str, os.PathLike)):
            path = pathlib.Path(source)
            if path.is_file():
                path.read_bytes()
                return
        elif callable(getattr(source, "read", None)):
            source.read()
            return


class _NoCollate(Change):
    """Batches are remembered ones of the same length."""

    def change_fetcher(self, fetcher: Any) -> None:
        collate, kept = fetcher.collate_fn, Variants()
        fetcher.collate_fn = lambda samples: copied(kept.of(len(samples), lambda: collate(samples)), leaves=False)


class _Token:
    """In the place of a batch on its way: the loop has one like it."""

    def __init__(self, worker: int, length: int, variant: int) -> None:
        self.key = (worker, length, variant)


class _First:
    """A batch that is to be kept."""

    def __init__(self, token: _Token, batch: Any) -> None:
        self.token, self.batch = token, batch

    def pin_memory(self) -> _First:
        """What torch does with batches that are to be copied to a device."""
        pinning: Any = importlib.import_module("torch.utils.data._utils.pin_memory")
        self.batch = pinning.pin_memory(self.batch)
        return self


class _NoHandover(Change):
    """Each worker hands over its first few batches of each length, and from then on says which of them is meant."""

    def __init__(self) -> None:
        self._worker = 0

    def begin_worker(self, worker: int, queue: Any) -> None:  # noqa: ARG002
        self._worker = worker

    def change_fetcher(self, fetcher: Any) -> None:
        collate, kept, joined = fetcher.collate_fn, dict[int, int](), [0]

        def join(samples: Any) -> Any:
            joined[0] = len(samples)  # a stream's last batch is shorter than what was asked for
            return collate(samples)

        if fetcher.auto_collation:
            fetcher.collate_fn = join

        def fetch_token(fetch: Callable[[Any], Any], index: Any) -> Any:
            batch = fetch(index)
            size = joined[0] if fetcher.auto_collation else len(index) if isinstance(index, list) else 1
            number = kept[size] = kept.get(size, -1) + 1
            token = _Token(self._worker, size, number % NUM_VARIANTS)
            return _First(token, batch) if number < NUM_VARIANTS else token

        interpose(fetcher, "fetch", fetch_token)

    def follow(self, iterator: Any) -> None:
        kept: dict[Any, Any] = {}

        def next_kept(next_data: Callable[[], Any]) -> Any:
            told = next_data()
            if isinstance(told, _First):
                kept[told.token.key] = told.batch
                told = told.token
            return kept[told.key] if isinstance(told, _Token) else told

        interpose(iterator, "_next_data", next_kept)
