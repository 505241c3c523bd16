"""Names of the samples in each batch, taken from what orders them: nothing is asked of the workers."""

from __future__ import annotations

from typing import Any

from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import attribute, is_headrace, is_torch
from headrace.doctor.subject.rebuild import RecordedSampler
from headrace.doctor.timing.realise import with_changes

__all__ = ["Identities"]


class Identities:
    """Of one run. `loader` is what is to be walked."""

    def __init__(self, subject: Subject, loader: Any) -> None:
        self._subject = subject
        self._drawn: RecordedSampler | None = None
        self._noted: list[tuple[Any, ...]] = []
        self._places: list[int] = []
        self._next = 0
        self.loader = loader
        self._is_headrace = is_headrace(loader)
        if is_torch(loader) and not subject.is_iterable and attribute(loader, "in_order") is not False:
            name = "sampler" if attribute(loader, "batch_sampler") is None else "batch_sampler"
            self._drawn = RecordedSampler(getattr(loader, name))
            self.loader = with_changes(subject, loader, **{name: self._drawn})

    def begin_epoch(self) -> None:
        """An epoch is about to begin; what was drawn beyond the end of the one before is never delivered."""
        self._next = 0 if self._drawn is None else len(self._drawn.yielded)

    def note(self) -> None:
        """A batch has been handed over. headrace's loader says itself who is in it; torch's keeps the sampler's order."""
        if self._is_headrace:
            self._noted.append(tuple(self.loader.last.sample_ids))
        elif self._drawn is not None:
            self._places.append(self._next)
            self._next += 1

    def names(self) -> tuple[tuple[str, ...], ...] | None:
        """Returns the names of the samples of each batch; None: they are not known."""
        if self._is_headrace:
            return tuple(tuple(map(str, ids)) for ids in self._noted)
        if self._drawn is None:
            return None
        drawn = self._drawn.yielded
        if self._places and self._places[-1] >= len(drawn):
            return None  # batches came that the sampler did not order
        return tuple(self._named(drawn[place]) for place in self._places)

    def _named(self, rows: Any) -> tuple[str, ...]:
        keys = rows if isinstance(rows, list) else [rows]
        return tuple(str(self._subject.sample_id(key) if isinstance(key, int) else key) for key in keys)
