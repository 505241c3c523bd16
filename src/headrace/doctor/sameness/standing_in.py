"""What is walked: the user's loader with its collate function stood in for, or, of other libraries, as it is.

The stand-in is the observer of `walks/`: it names and digests the samples where they are prepared, calls the loader's own
collate function, and hands both over.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any, Protocol

from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import is_headrace
from headrace.doctor.subject.rebuild import RecordedSampler
from headrace.doctor.subject.walking import split_batch
from headrace.doctor.walks.observer import HandedOver, Note, Observer, Telling, name_index, note_sample
from headrace.errors import SampleId

__all__ = ["Source"]


class Wish(Protocol):
    """What it needs to know of the walk."""

    @property
    def num_workers(self) -> int | None:
        """None: as the loader is set."""

    @property
    def folder(self) -> str:
        """For the workers' journals."""

    @property
    def telling(self) -> Telling:
        """What is told of each sample."""

    @property
    def wanted_at(self) -> tuple[int, int] | None:
        """(epoch, position) of a sample whose arrays are wanted."""


class Source:
    """What is walked: the loader with its collate function stood in for, or as it is."""

    def __init__(self, subject: Subject, wish: Wish) -> None:
        self.subject, self.wish = subject, wish
        self.observer: Observer | None = None
        self._iterator: Any = None
        self._rows: dict[SampleId, int] | None = None
        self._num_refused = 0
        self._place = 0
        self._drawn: RecordedSampler | None = None
        """What the sampler drew, where the data set is of a built-in class, which cannot be looked into."""
        self._num_batches = 0
        self.is_headrace = is_headrace(subject.loader)
        self.loader = self._stand_in()

    def _stand_in(self) -> Any:
        subject, wish = self.subject, self.wish
        loader = subject.loader
        if loader is None:
            if wish.telling.freezes:
                self._observe(None).start_here(subject.dataset)
            return None if wish.num_workers is None else subject.with_workers(wish.num_workers)
        num_workers = subject.num_workers if wish.num_workers is None else wish.num_workers
        if self.is_headrace:
            # Who runs there is its own matter, threads included: nothing is hooked; ids come with the batch. To freeze
            # samples, or to show one, one process does it.
            observer = self._observe(None)
            if wish.telling.freezes or wish.telling.wanted is not None:
                num_workers = 0
                observer.start_here(subject.dataset)
            return subject.with_workers(num_workers, collate_fn=observer.join)
        torch_loader = importlib.import_module("torch.utils.data").DataLoader
        if not isinstance(loader, torch_loader):
            return loader if wish.num_workers is None else subject.with_workers(num_workers)
        self.observer = observer = self._observe(wish.folder if num_workers else None)
        if num_workers == 0:
            observer.start_here(subject.dataset)
        changes: dict[str, Any] = {"collate_fn": observer.join, "worker_init_fn": observer.start}
        if not subject.is_iterable and type(subject.dataset).__module__ == "builtins":
            name = "batch_sampler" if getattr(loader, "batch_sampler", None) is not None else "sampler"
            changes[name] = self._drawn = RecordedSampler(getattr(loader, name))
        return subject.with_workers(num_workers, **changes)

    def _observe(self, folder: str | None) -> Observer:
        loader = self.subject.loader
        return Observer(
            folder or self.wish.folder,
            user_init=getattr(loader, "worker_init_fn", None),
            user_collate=getattr(loader, "collate_fn", None) or self.subject.collate(),
            is_batched=self.subject.joins_samples,
            telling=dataclasses.replace(self.wish.telling, has_names=not self.subject.is_iterable),
        )

    def begin(self) -> Iterator[Any]:
        """Begins an epoch."""
        self._num_refused, self._place, self._num_batches = 0, 0, 0
        if self._drawn is not None:
            self._drawn.yielded.clear()
        if self.loader is not None:
            return iter(self.loader)
        if not self.subject.is_iterable:
            return self._rows_alone()
        return self.subject.epoch()

    def _rows_alone(self) -> Iterator[Any]:
        """A data set without a loader: its rows in their order."""
        for row in range(self.subject.num_samples or 0):
            yield HandedOver([note_sample(self.subject.read(row), row, self.wish.telling)], None)

    def take_apart(self, item: Any) -> tuple[list[Note], Any, tuple[SampleId, ...]]:
        """Returns the samples of what was delivered, the batch itself, and the ids that were refused on the way."""
        if isinstance(item, HandedOver):
            if self.is_headrace:
                return self._with_ids(item)
            return self._with_drawn(item.notes), item.batch, ()
        parts = split_batch(item, self.subject.batch_size) if self.subject.is_batched else [item]
        telling = self.wish.telling
        notes = []
        for part in parts or [item]:
            is_wanted = self.wish.wanted_at is not None and self._place == self.wish.wanted_at[1]
            wish = dataclasses.replace(telling, wanted=self._place) if is_wanted else telling
            note = note_sample(part, self._place if is_wanted else None, wish)
            notes.append(dataclasses.replace(note, name=None))
            self._place += 1
        return notes, item, ()

    def _with_drawn(self, notes: list[Note]) -> list[Note]:
        """Names from the sampler: batches come in its order."""
        number, self._num_batches = self._num_batches, self._num_batches + 1
        if self._drawn is None or number >= len(self._drawn.yielded):
            return notes
        drawn = self._drawn.yielded[number]
        indices = drawn if isinstance(drawn, list) else [drawn]
        if len(indices) != len(notes):
            return notes
        return [dataclasses.replace(note, name=name_index(index)) for note, index in zip(notes, indices, strict=True)]

    def _with_ids(self, item: HandedOver) -> tuple[list[Note], Any, tuple[SampleId, ...]]:
        """Headrace's own loader says itself who is in the batch, and whom it refused."""
        ids = list(self.loader.last.sample_ids)
        refusals = self.loader.quarantine
        refused = tuple(one.sample_id for one in refusals[self._num_refused :])
        self._num_refused = len(refusals)
        if len(ids) != len(item.notes):
            ids = [None] * len(item.notes)
        notes = []
        for note, sample_id in zip(item.notes, ids, strict=True):
            row = None if self.subject.is_iterable else self._row_of(sample_id)
            notes.append(dataclasses.replace(note, name=row, key=note.key if self.subject.is_iterable else sample_id))
        return notes, item.batch, refused

    def _row_of(self, sample_id: SampleId) -> SampleId:
        if self._rows is None:
            subject = self.subject
            self._rows = {subject.sample_id(row): row for row in range(subject.num_samples or 0)}
        return self._rows.get(sample_id, sample_id)

    def name_of(self, note: Note) -> SampleId | None:
        """The id of a sample, where it has one."""
        if self.subject.is_iterable or note.name is None:
            return note.key
        return self.subject.sample_id(note.name) if isinstance(note.name, int) else note.name
