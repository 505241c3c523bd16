"""Joins samples, keeps what comes out while the next is made, and asks what pinning would reach; without workers."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from headrace.contract.view import as_array, flatten
from headrace.doctor.evidence.base import Evidence
from headrace.doctor.evidence.batches import Dropping, KeptBatches, Overwrite, PaddedField, Paddings, Pinning
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.content import Content, content_of
from headrace.doctor.probes.dropping import find_dropped, made_of
from headrace.doctor.probes.held_state import HeldState
from headrace.doctor.probes.padding import find_paddings, varying_fields
from headrace.doctor.probes.pinning import find_unreached
from headrace.doctor.probes.roots import roots_of
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject
from headrace.doctor.subject.rebuild import rebuild
from headrace.errors import SampleId

__all__ = ["STEP", "DrawBatches", "JoinMany"]

NUM_KEPT = 3
"""Samples and batches that are made one after another, the earlier ones kept."""
NUM_JOINED = 8
"""Samples of several lengths that are joined at once."""
MAX_PREPARED = 48
"""Samples that are held in memory to be joined."""
MAX_BYTES = 256 << 20
"""Bytes of samples that are held in memory."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JoinMany:
    """The experiment on samples; yields Paddings and Dropping, and an Overwrite if one sample overwrites another."""

    name: ClassVar[str] = "joining many"
    starts_processes: ClassVar[bool] = False

    indices: Sequence[int]
    seed: int
    limit_s: float

    def run(self, subject: Subject, bench: Bench) -> Iterator[Paddings | Dropping | Overwrite]:
        """Prepares samples, and looks whether earlier ones stay as they were; then joins them."""
        function, deadline = subject.collate(), time.monotonic() + self.limit_s
        ids, samples, overwritten = self._prepare(subject, bench, deadline - self.limit_s / 2)
        if overwritten is not None:  # what was overwritten is no sample any more: nothing can be learnt from joining it
            yield overwritten
            return
        if not samples or not subject.joins_samples:
            return

        def join(chosen: list[Any]) -> Any:
            with bench.holding(None, None, stage="collate"):
                bench.reseed(self.seed, "join")
                return function(chosen)

        yield self._pad(subject, join, ids, samples)
        if not subject.has_default_collate:
            dropped, num_tried = find_dropped(join, samples, lambda: time.monotonic() < deadline)
            yield Dropping(
                collate=subject.collate_name,
                num_tested=num_tried,
                dropped=tuple(ids[place] for place in dropped),
                num_none=sum(samples[place] is None for place in dropped),
                alone=made_of(join, samples[dropped[0]]) if dropped else None,
            )

    def _prepare(
        self, subject: Subject, bench: Bench, deadline: float
    ) -> tuple[list[SampleId], list[Any], Overwrite | None]:
        ids, samples, kept, num_bytes = list[SampleId](), list[Any](), list[Content](), 0
        for index in self.indices:
            sample_id = subject.sample_id(index)
            with bench.holding(index, sample_id, path=subject.locate(index)):
                bench.reseed(self.seed, index)
                try:
                    sample = subject.read(index, bench.enter)
                except Exception:  # noqa: S112 - the reads probe has reported what it saw
                    continue
                bench.stop_listening()
                for earlier, before in enumerate(kept):
                    fields = before.differing(content_of(samples[earlier]))
                    if fields:
                        found = _describe(subject, "sample", fields[0], samples[earlier], sample)
                        return ids, samples, dataclasses.replace(found, first=ids[earlier], second=sample_id)
                ids.append(sample_id)
                samples.append(sample)
                num_bytes += sum(array.nbytes for _, value in flatten(sample) if (array := as_array(value)) is not None)
                if len(kept) < NUM_KEPT:
                    kept.append(content_of(sample))
            if time.monotonic() > deadline or num_bytes > MAX_BYTES:
                break
        return ids, samples, None

    @staticmethod
    def _pad(
        subject: Subject, join: Callable[[list[Any]], Any], ids: Sequence[SampleId], samples: Sequence[Any]
    ) -> Paddings:
        """Joins the first samples that have a value in each field that varies."""
        places = [place for place, sample in enumerate(samples) if sample is not None]
        if varying_fields([samples[place] for place in places]):
            arrays = next(iter(varying_fields([samples[place] for place in places]).values()))
            lengths = {len(array): place for place, array in zip(reversed(places), reversed(arrays), strict=True)}
            places = list(dict.fromkeys([*sorted(lengths.values()), *places]))
        chosen = sorted(places[:NUM_JOINED])
        joined = [samples[place] for place in chosen]
        names = tuple(ids[place] for place in chosen)
        fields: tuple[PaddedField, ...] = ()
        if len(joined) > 1 and varying_fields(joined):
            with contextlib.suppress(Exception):  # that it cannot be joined is told by the collation probe
                fields = find_paddings(joined, names, join(list(joined)))
        return Paddings(collate=subject.collate_name, sample_ids=names, fields=fields)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrawBatches:
    """The experiment on batches; yields Pinning, then an Overwrite if one batch overwrites another, or a count."""

    name: ClassVar[str] = "keeping batches"
    starts_processes: ClassVar[bool] = False

    seed: int
    limit_s: float

    def run(self, subject: Subject, bench: Bench) -> Iterator[Pinning | Overwrite | int]:
        """Draws the first few batches without workers; yields nothing for a loader that is not torch's."""
        if not isinstance(subject.loader, importlib.import_module("torch.utils.data").DataLoader):
            return
        batches, kept, deadline = list[Any](), list[Content](), time.monotonic() + self.limit_s
        bench.reseed(self.seed, "batches")
        iterator = iter(rebuild(subject.loader, num_workers=0))
        while len(batches) < NUM_KEPT and time.monotonic() < deadline:
            with bench.holding(None, None, stage="batch"):
                bench.stop_listening()
                try:
                    batch = next(iterator)
                except Exception:  # the end, or what others report
                    break
                if not batches:
                    yield self._pinning(subject, batch)
                for number, before in enumerate(kept):
                    fields = before.differing(content_of(batches[number]))
                    if fields:
                        found = _describe(subject, "batch", fields[0], batches[number], batch)
                        names = (f"batch {number + 1}", f"batch {len(batches) + 1}")
                        yield dataclasses.replace(found, first=names[0], second=names[1])
                        return
                batches.append(batch)
                kept.append(content_of(batch))
        yield len(batches)

    @staticmethod
    def _pinning(subject: Subject, batch: Any) -> Pinning:
        import torch

        is_wanted = bool(getattr(subject.loader, "pin_memory", False))
        num_tensors, left = 0, list[tuple[str, str]]()
        if is_wanted:
            with contextlib.suppress(Exception):  # a pin_memory of the user's own that needs a device
                num_tensors, left = find_unreached(batch)
        return Pinning(
            is_wanted=is_wanted,
            torch=torch.__version__.partition("+")[0],
            num_tensors=num_tensors,
            unreached=tuple(path for path, _ in left),
            holders=tuple(dict.fromkeys(holder for _, holder in left)),
        )


def _describe(subject: Subject, what: Any, field: str, first: Any, second: Any) -> Overwrite:
    ours, theirs = dict(flatten(first)).get(field), dict(flatten(second)).get(field)
    a, b = as_array(ours), as_array(theirs)
    shares = ours is theirs or (a is not None and b is not None and bool(np.may_share_memory(a, b)))
    buffer = None
    if a is not None:
        held = HeldState(roots_of(subject), keys=(), num_samples=subject.num_samples)
        buffer = held.path_in(a)
    return Overwrite(what=what, field=field, first="", second="", shares_memory=shares, buffer=buffer)


class _BatchStep:
    """Samples joined and batches kept, in the child that is there."""

    place = 120
    gives: tuple[type[Evidence], ...] = (Paddings, Dropping, KeptBatches, Pinning)
    every_split = True

    def run(self, round_: Round) -> None:
        """Asks for the samples first, then for batches of a torch DataLoader."""
        limit_s = min(round_.wishes.walk_s / 2, round_.left_s / 4)
        overwritten = self._join(round_, limit_s)
        self._draw(round_, limit_s, overwritten)

    @staticmethod
    def _join(round_: Round, limit_s: float) -> Overwrite | None:
        found, wishes = round_.found, round_.wishes
        readable = [one.read for one in round_.prepared if one.read.outcome == "ok"]
        if not readable:
            found.lacks([Paddings, Dropping], "there are no samples that could be asked for one by one and joined")
            return None
        odd = [read.index for read in readable if any(view.kind == "none" for view in read.fields)]
        indices = sorted(list(dict.fromkeys([*odd, *(read.index for read in readable)]))[:MAX_PREPARED])
        round_.say(JoinMany.name)
        records, ending = round_.ask(JoinMany(indices=indices, seed=wishes.seed, limit_s=limit_s))
        found.note(JoinMany.name, ending)
        overwritten = next((record for record in records if isinstance(record, Overwrite)), None)
        reason = told(ending) or (
            "a sample overwrites another one" if overwritten else "torch's default rules join samples, or nothing does"
        )
        found.lacks([Paddings, Dropping], reason)
        for record in records:
            if isinstance(record, (Paddings, Dropping)):
                found.add(record)
        return overwritten

    @staticmethod
    def _draw(round_: Round, limit_s: float, overwritten: Overwrite | None) -> None:
        found = round_.found
        records: list[Any] = []
        if round_.facts.collate is None:
            found.lacks([Pinning], "there is no loader that could pin")
        else:
            round_.say(DrawBatches.name)
            records, ending = round_.ask(DrawBatches(seed=round_.wishes.seed, limit_s=limit_s))
            found.note(DrawBatches.name, ending)
            found.lacks([Pinning], told(ending) or "no batch of a torch DataLoader came out")
        for record in records:
            if isinstance(record, Pinning):
                found.add(record)
        if not any(isinstance(record, (int, Overwrite)) for record in records) and not round_.prepared:
            found.lacks([KeptBatches], "neither samples nor batches could be drawn")
            return
        found.add(
            KeptBatches(
                sample=overwritten,
                batch=next((record for record in records if isinstance(record, Overwrite)), None),
                copies_samples=round_.facts.batch_size == 1 and round_.introduction.has_default_collate,
                num_batches=next((record for record in records if isinstance(record, int)), 0),
            )
        )


STEP = _BatchStep()
