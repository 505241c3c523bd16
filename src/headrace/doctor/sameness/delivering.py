"""Walks a loader as its user does, in the child, and tells of each batch who was in it and what it held.

Samples are digested where they are prepared: in the workers, by the collate function's stand-in. Loaders of other
libraries have none that could be stood in for; their batches are taken apart here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from headrace.contract.view import flatten, view_form
from headrace.doctor.lab.bench import Bench
from headrace.doctor.sameness.draws import repeated_draws, shared_draws
from headrace.doctor.sameness.explaining import introduce
from headrace.doctor.sameness.passport import Batch, Sample, SharedDraws, Stopped
from headrace.doctor.sameness.standing_in import Source
from headrace.doctor.stacks import innermost_at
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.samplers import set_epoch_holders
from headrace.doctor.subject.walking import end_pass
from headrace.doctor.walks.field_digests import exact_digests
from headrace.doctor.walks.journal import read_journal
from headrace.doctor.walks.observer import Note, Telling
from headrace.errors import SampleId

__all__ = ["SPENT", "Ended", "Followed", "Prepare", "Refused", "Shown", "WalkDelivery"]

MESSAGE_CHARS = 200
SPENT = "its share of the budget was spent"
"""How the reason of a walk begins that was left for want of time."""
Prepare = Callable[[Subject], Subject]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An epoch is over."""

    epoch: int
    is_whole: bool
    """False: it was left after the number of samples that was asked for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What the generators in the workers did."""

    shared: tuple[SharedDraws, ...]
    """Over workers."""
    repeated: tuple[SharedDraws, ...]
    """Over epochs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """The loader cannot be walked in the way that was asked for."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """The arrays of the wanted sample."""

    arrays: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WalkDelivery:
    """The experiment. Yields Introduction, then Batch, Ended and Followed; Stopped if the loader raised."""

    name: ClassVar[str] = "delivery"
    starts_processes: ClassVar[bool] = True

    num_workers: int | None
    """None: as the loader is set."""
    num_epochs: int
    seed: int
    """The global generators are seeded with it and the epoch before each epoch, so that both sides have one plan."""
    folder: str
    """For the workers' journals."""
    telling: Telling
    max_samples: int | None = None
    """Samples of each epoch; None: all."""
    wants_batches: bool = False
    """True: the delivered batches are digested, too."""
    wanted_at: tuple[int, int] | None = None
    """(epoch, position) of a sample whose arrays are wanted; the walk ends there."""
    most_s: float = float("inf")
    """Seconds for the walk; it is left then, between two batches."""
    prepare: Prepare | None = None
    """Called in the child: returns the target to walk in the place of this one. It pickles."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Any]:
        """Walks."""
        try:
            subject = subject if self.prepare is None else self.prepare(subject)
        except CannotExamine as error:
            yield Refused(error.what)
            return
        yield introduce(subject, self.num_workers)
        deadline = time.monotonic() + self.most_s
        try:
            source = Source(subject, self)
        except CannotExamine as error:
            yield Refused(error.what)
            return
        for epoch in range(self.num_epochs):
            for holder in set_epoch_holders(subject.loader):
                with contextlib.suppress(Exception):  # one that wants more than a number
                    holder.set_epoch(epoch)
            bench.reseed(self.seed, "epoch", epoch)
            try:
                yield from self._walk(source, bench, epoch, deadline)
            except Exception as error:
                if _is_our_own(error):
                    raise
                yield Stopped(epoch=epoch, reason=_describe(error), is_error=True)
                return
            if time.monotonic() > deadline:
                return
        if source.observer is not None and self.telling.wanted is None and not self.telling.freezes:
            journals = [read_journal(path) for path in sorted(pathlib.Path(self.folder).glob("*.journal"))]
            name = subject.sample_id
            yield Followed(shared=shared_draws(journals, name), repeated=repeated_draws(journals, name))

    def _walk(self, source: Source, bench: Bench, epoch: int, deadline: float) -> Iterator[Any]:
        num_samples = 0
        with bench.holding(None, None, stage=f"start of epoch {epoch}"):
            batches = source.begin()
        for number in itertools.count():
            if number and time.monotonic() > deadline:
                _leave(batches)
                reason = f"{SPENT} after {num_samples:,} samples of epoch {epoch}"
                yield Stopped(epoch=epoch, reason=reason, is_error=False)
                return
            with bench.holding(None, None, stage=f"batch {number} of epoch {epoch}"):
                try:
                    item = next(batches)
                except StopIteration:
                    break
                bench.stop_listening()
                notes, batch, refused = source.take_apart(item)
            shown = self._shown(notes, epoch, num_samples)
            if shown is not None:
                yield shown
                return
            samples = tuple(_sample(note, source.name_of) for note in notes if not note.is_none)
            left_out = tuple(source.name_of(note) for note in notes if note.is_none)
            is_cut = self.max_samples is not None and num_samples + len(samples) > self.max_samples
            kept = samples[: self.max_samples - num_samples] if is_cut and self.max_samples is not None else samples
            yield Batch(
                epoch=epoch,
                samples=kept,
                refused=(*refused, *(one for one in left_out if one is not None)),
                form=_forms(batch) if self.wants_batches and not is_cut else {},
                digests=exact_digests(batch) if self.wants_batches and not is_cut else {},
                is_at_once=getattr(item, "is_at_once", False),
                undivided=getattr(item, "undivided", ""),
            )
            num_samples += len(kept)
            if is_cut:
                _leave(batches)
                yield Ended(epoch=epoch, is_whole=False)
                return
        yield Ended(epoch=epoch, is_whole=True)

    def _shown(self, notes: list[Note], epoch: int, position: int) -> Shown | None:
        for place, note in enumerate(notes):
            at = self.wanted_at
            if note.arrays is not None and (at is None or at == (epoch, position + place)):
                return Shown(note.arrays)
        return None


def _leave(batches: Any) -> None:
    """Ends a pass before its end; what it raises then has no part in what was delivered."""
    with contextlib.suppress(Exception):
        end_pass(batches)


def _is_our_own(error: BaseException) -> bool:
    """True for an exception in which no frame is the user's or a library's: a fault of the walk itself."""
    trace = error.__traceback__
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return all("/headrace/doctor/" in file for file in files)


def _sample(note: Note, name_of: Callable[[Note], SampleId | None]) -> Sample:
    return Sample(note.name, name_of(note), note.fields)


def _forms(batch: Any) -> dict[str, str]:
    """Field of a batch -> everything that the training loop relies on, apart from the values."""
    found = {}
    for field, value in flatten(batch):
        form = view_form(field, value)
        parts = [form.kind, form.dtype or "", "" if form.shape is None else str(list(form.shape))]
        contiguous = getattr(value, "is_contiguous", None)
        if callable(contiguous):
            parts += ["contiguous" if contiguous() else "strided", str(getattr(value, "device", ""))]
        elif hasattr(value, "flags"):
            parts.append("contiguous" if value.flags.c_contiguous else "strided")
        found[field] = " ".join(filter(None, parts))
    return found


def _describe(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    # Torch puts the worker's whole traceback in front of what was raised.
    text = lines[-1] if lines and str(error).startswith("Caught ") else lines[0] if lines else ""
    kind = type(error).__name__
    text = text.removeprefix(f"{kind}: ")[:MESSAGE_CHARS]
    at = innermost_at(error)
    return f"{kind}: {text}" + (f" ({at})" if at and not str(error).startswith("Caught ") else "")
