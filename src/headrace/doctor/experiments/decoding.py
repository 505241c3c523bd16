"""Prepares a few samples once more, watches errors that stay inside, and looks at their files apart."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from headrace.contract.view import ValueView
from headrace.doctor.evidence import Evidence, Refusal, SampleRead, SampleReads
from headrace.doctor.evidence.decoding import Decoding, Oversize, SampleDecoding, Swallowed
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.compared import compare
from headrace.doctor.probes.kept_inside import Raised, Watch, watching
from headrace.doctor.probes.reads import Prepared, digest_of, view_fields, with_ends
from headrace.doctor.probes.stream_reads import one_pass
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject, Walk
from headrace.errors import SampleId

__all__ = ["STEP", "Again", "LookAgain"]

MAX_AGAIN = 48
"""Samples that are prepared once more; time ends it sooner where they are large."""
MAX_COMPARED = 12
"""Of them, samples whose files are looked at apart: a habit of the code shows in the first few."""
LARGE_PIXELS = 1_000_000
"""Pictures below this size are not worth decoding in part."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """One sample, prepared once more."""

    index: int
    decoding: SampleDecoding | None
    """None: its files were not looked at, or it did not come out this time."""
    swallowed: tuple[Swallowed, ...]
    read: SampleRead | None = None
    """Of a stream: what came out in this very pass, because another pass may have another order."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LookAgain:
    """The experiment; yields one Again per row, then at most one Oversize.

    A stream is walked once more, its first samples up to as many as there are rows.
    """

    name: ClassVar[str] = "decoding"
    starts_processes: ClassVar[bool] = False

    indices: tuple[int, ...]
    seed: int
    wall_s: float
    """Seconds after which no other sample is begun."""
    targets: tuple[str, ...] = ()

    def run(self, subject: Subject, bench: Bench) -> Iterator[Again | Oversize]:
        """Prepares one sample after another."""
        large: list[tuple[str, int, int]] = []
        for again in self._walk(subject, bench) if subject.is_iterable else self._each(subject, bench):
            large += _large_jpegs(again)
            yield again
        if large:
            with bench.holding(None, None, stage="decode"):
                bench.stop_listening()
                found = _measure(*large[0])
            if found is not None:
                yield found

    def _each(self, subject: Subject, bench: Bench) -> Iterator[Again]:
        started, num_compared = time.monotonic(), 0
        for index in self.indices:
            if time.monotonic() - started > self.wall_s:
                break
            again = self._prepare(index, subject, bench, is_compared=num_compared < MAX_COMPARED)
            num_compared += again.decoding is not None and bool(again.decoding.pictures)
            yield again

    def _walk(self, subject: Subject, bench: Bench) -> Iterator[Again]:
        """One pass. Where reading runs ahead of what is delivered, it is not known which file became which sample."""
        started = time.monotonic()
        found: list[Again] = []
        num_compared = 0
        with one_pass(subject, bench, self.seed) as walk:
            while walk.position < len(self.indices) and time.monotonic() - started < self.wall_s:
                place = walk.position
                with bench.holding(place, walk.coming):
                    with watching(bench.seen) as watch:
                        try:
                            sample = next(walk)
                        except StopIteration:
                            break
                        except BaseException:  # the pass before has reported what it saw
                            if walk.position == place:
                                break
                            continue
                    bench.stop_listening()
                    is_compared = num_compared < MAX_COMPARED
                    decoding = self._compare(place, walk.key, sample, bench) if is_compared else None
                    read = _read_of(place, walk, sample, bench)
                num_compared += decoding is not None and bool(decoding.pictures)
                swallowed = tuple(
                    dataclasses.replace(one, answered_path=None)  # the next file of a stream is simply the next one
                    for one in _swallowed(place, walk.key, watch, bench)
                )
                found.append(Again(index=place, decoding=decoding, swallowed=swallowed, read=read))
        is_one_to_one = len({len(one.decoding.pictures) for one in found if one.decoding is not None}) == 1
        yield from found if is_one_to_one else [dataclasses.replace(one, decoding=None) for one in found]

    def _prepare(self, index: int, subject: Subject, bench: Bench, *, is_compared: bool) -> Again:
        sample_id = subject.sample_id(index)
        with bench.holding(index, sample_id, path=subject.locate(index)):
            bench.reseed(self.seed, index)
            with watching(bench.seen) as watch:
                try:
                    sample = subject.read(index, bench.enter)
                except BaseException:  # it came out the first time; a sample that fails at random is told elsewhere
                    return Again(index=index, decoding=None, swallowed=())
            bench.stop_listening()
            decoding = self._compare(index, sample_id, sample, bench) if is_compared else None
        return Again(index=index, decoding=decoding, swallowed=_swallowed(index, sample_id, watch, bench))

    def _compare(self, index: int, sample_id: SampleId, sample: Any, bench: Bench) -> SampleDecoding | None:
        try:
            pictures, fields = compare(sample, bench.seen.pictures, self.targets)
        except Exception:  # an array of the user's own kind that cannot be calculated with: there are other samples
            return None
        return SampleDecoding(
            index=index,
            sample_id=sample_id,
            path=bench.opened[0] if bench.opened else None,
            pictures=pictures,
            fields=fields,
            decode_s=0.0,
            wall_s=0.0,
        )


def _read_of(index: int, walk: Walk, sample: Any, bench: Bench) -> SampleRead:
    return SampleRead(
        index=index,
        sample_id=walk.key,
        path=walk.path or (bench.opened[0] if bench.opened else None),
        outcome="ok",
        stage="done",
        images=tuple(with_ends(bench)),
        digest=digest_of(sample),
        fields=view_fields(sample),
    )


def _swallowed(index: int, sample_id: SampleId, watch: Watch, bench: Bench) -> tuple[Swallowed, ...]:
    """Each error that stayed inside; those that say the same thing once."""
    found: dict[tuple[str, str | None], Swallowed] = {}
    for raised in watch.raised:
        found.setdefault((raised.type_names[0], raised.path), _one(index, sample_id, raised, watch, bench))
    named = {one.path for one in found.values()}
    for refusal in bench.seen.refusals:
        if refusal.path not in named or not refusal.error_type:
            found.setdefault(
                (refusal.error_type, refusal.path),
                Swallowed(
                    index=index,
                    sample_id=sample_id,
                    path=refusal.path,
                    error_type=refusal.error_type,
                    error_message=refusal.error_message,
                    at=None,
                    by_decoder=True,
                    is_missing=_is_missing(refusal),
                    recovered=_same_name_later(refusal.path, bench.seen.opens, 0),
                ),
            )
    return tuple(found.values())


def _one(index: int, sample_id: SampleId, raised: Raised, watch: Watch, bench: Bench) -> Swallowed:
    opens = bench.seen.opens
    answered = watch.answer_instead(raised)
    later = [path for path in opens[raised.num_opens :] if path != raised.path]
    read_again = raised.path is not None and (
        raised.path in opens[raised.num_opens :]
        # A question such as `int(name)`, about a file that a decoder has read, is not about its content.
        or (not raised.is_explicit and bench.seen.was_read(raised.path))
    )
    return Swallowed(
        index=index,
        sample_id=sample_id,
        path=raised.path,
        error_type=raised.type_names[0],
        error_message=raised.message,
        at=raised.at,
        by_decoder=raised.by_decoder,
        is_missing="FileNotFoundError" in raised.type_names,
        recovered=read_again or _same_name_later(raised.path, opens, raised.num_opens),
        answered_row=None if answered is None else answered.row,
        # Which of them belongs to another row is known where all rows are known.
        answered_path=later[-1] if later else None,
    )


def _is_missing(refusal: Refusal) -> bool:
    """By the error, because a cache may have written the file since; by a look for decoders that only answer nothing."""
    is_told = refusal.error_type == "FileNotFoundError"
    return is_told or (not refusal.error_type and refusal.path is not None and not pathlib.Path(refusal.path).exists())


def _same_name_later(path: str | None, opens: Sequence[str], start: int) -> bool:
    """True if another file of the same name was opened: `7.jpg` is not there, `7.png` is."""
    if path is None:
        return False
    stem = pathlib.PurePath(path).stem
    return any(pathlib.PurePath(one).stem == stem and one != path for one in opens[start:])


def _large_jpegs(again: Again) -> Iterator[tuple[str, int, int]]:
    for picture in again.decoding.pictures if again.decoding else ():
        sizes = [step.after for step in picture.steps if step.name == "resize"]
        if picture.format == "JPEG" and picture.path and sizes and picture.size[0] * picture.size[1] >= LARGE_PIXELS:
            yield picture.path, *sizes[-1]


def _measure(path: str, width: int, height: int) -> Oversize | None:
    """Decodes one JPEG in full and by `draft`; each twice, the quicker one counts."""
    from PIL import Image

    def once(*, is_reduced: bool) -> float:
        with Image.open(path) as image:
            started = time.perf_counter()
            if is_reduced:
                image.draft(None, (2 * width, 2 * height))
            image.load()
            return time.perf_counter() - started

    try:
        full, reduced = (min(once(is_reduced=flag) for _ in range(2)) for flag in (False, True))
    except (OSError, SyntaxError, ValueError):
        return None
    return Oversize(path=path, full_s=full, reduced_s=reduced)


class _Step:
    """Its place in a diagnosis."""

    place: ClassVar[int] = 110
    gives: ClassVar[tuple[type[Evidence], ...]] = (Decoding,)
    every_split: ClassVar[bool] = True

    def run(self, round_: Round) -> None:
        """Looks again at what came out, the suspicious samples first."""
        came_out = [one for one in round_.prepared if one.read.outcome == "ok"]
        if not came_out:
            round_.found.lacks(self.gives, "no sample that came out could be looked at again")
            return
        round_.say("looking at the files of a few samples")
        targets = _targets(round_)
        chosen = _choose([one.read for one in came_out], MAX_AGAIN // 2 if round_.wishes.quick else MAX_AGAIN)
        wall_s = min(round_.wishes.walk_s, round_.left_s / 4)
        experiment = LookAgain(indices=chosen, seed=round_.wishes.seed, wall_s=wall_s, targets=targets)
        records, ending = round_.ask(experiment)
        again = [record for record in records if isinstance(record, Again)]
        oversize = next((record for record in records if isinstance(record, Oversize)), None)
        round_.found.note(experiment.name, ending, f"{len(again)} samples looked at again")
        if not again:
            round_.found.lacks(self.gives, f"the samples could not be looked at again: {told(ending)}")
            return
        if again[0].read is not None:
            round_.found.add(_of_stream(came_out, again, oversize, round_))
            return
        num_samples = round_.facts.num_samples or len(came_out)
        round_.found.add(_evidence(came_out, again, oversize, num_samples))


STEP = _Step()


def _targets(round_: Round) -> tuple[str, ...]:
    seen = round_.found.evidence.get(SampleReads)
    return seen.target_fields if isinstance(seen, SampleReads) else ()


def _choose(reads: Sequence[SampleRead], limit: int) -> tuple[int, ...]:
    """Rows with a refusal first, then those that are like others or constant, then a spread."""
    digests = Counter(read.digest for read in reads if read.digest is not None)
    refused = [read.index for read in reads if read.refusals]
    odd = [read.index for read in reads if _is_constant(read) or digests[read.digest or ""] > 1]
    step = max(1, len(reads) // limit)
    spread = [read.index for read in reads[::step]]
    # Half of the places are for ordinary samples: what all of them do is seen in these.
    few = [*refused, *odd][: limit // 2]
    return tuple(list(dict.fromkeys([*few, *spread, *refused]))[:limit])


def _largest(read: SampleRead) -> ValueView | None:
    def size(view: ValueView) -> int:
        count = 1
        for length in view.shape or ():
            count *= length
        return count

    sized = [view for view in read.fields if view.shape and view.minimum is not None]
    return max(sized, key=size, default=None)


def _is_constant(read: SampleRead) -> bool:
    view = _largest(read)
    return view is not None and view.minimum == view.maximum


def _of_stream(
    came_out: Sequence[Prepared], again: Sequence[Again], oversize: Oversize | None, round_: Round
) -> Decoding:
    """The evidence of a pass. An error after which the stream went on to its next record replaced nothing."""
    stage_s = {one.read.index: one.stage_s for one in came_out}
    prepared = [Prepared(read=one.read, stage_s=stage_s.get(one.index, {})) for one in again if one.read is not None]
    found = _evidence(prepared, again, oversize, round_.facts.num_samples or len(prepared))
    replaced = tuple(one for one in found.swallowed if one.is_placeholder or one.equal_to is not None)
    return dataclasses.replace(found, swallowed=replaced)


def _evidence(
    came_out: Sequence[Prepared], again: Sequence[Again], oversize: Oversize | None, num_samples: int
) -> Decoding:
    reads = {one.read.index: one.read for one in came_out}
    watched = {one.index for one in again}
    swallowed = [one for record in again for one in record.swallowed]
    for read in reads.values():
        # What was not watched, or kept its error inside only the first time, is known by what the decoders refused.
        seen = (
            {one.path for one in swallowed if one.index == read.index} if read.index in watched else set[str | None]()
        )
        swallowed += [
            Swallowed(
                index=read.index,
                sample_id=read.sample_id,
                path=refusal.path,
                error_type=refusal.error_type,
                error_message=refusal.error_message,
                at=None,
                by_decoder=True,
                is_missing=_is_missing(refusal),
                recovered=_same_name_later(refusal.path, [file.path for file in read.files], 0),
                answered_path=read.files[-1].path if read.files and read.files[-1].path != refusal.path else None,
            )
            for refusal in read.refusals
            if refusal.path not in seen
        ]
    consequences = _Consequences(list(reads.values()))
    habits = _habits(swallowed, len(watched))
    judged = [
        consequences.add_to(one)
        for one in swallowed
        if one.index in reads and not _says_none(reads[one.index]) and (one.by_decoder or _kind(one) not in habits)
    ]
    stage_s = {one.read.index: one.stage_s for one in came_out}
    return Decoding(
        num_examined=len(came_out),
        num_samples=num_samples,
        samples=tuple(
            dataclasses.replace(
                record.decoding,
                decode_s=stage_s[record.index].get("decode", 0.0),
                wall_s=sum(stage_s[record.index].values()),
            )
            for record in sorted(again, key=lambda one: one.index)
            if record.decoding is not None and record.index in stage_s
        ),
        swallowed=tuple(sorted(judged, key=lambda one: one.index)),
        cut_off=tuple(
            (read.sample_id, image.path or read.path or "")
            for read in reads.values()
            for image in read.images
            if image.is_cut_off
        ),
        oversize=oversize,
    )


def _says_none(read: SampleRead) -> bool:
    """True if the sample, or a part of it, is None: what is missing is not papered over."""
    return any(view.kind == "none" for view in read.fields)


def _kind(one: Swallowed) -> tuple[str, str | None]:
    return one.error_type, one.at


def _habits(swallowed: Sequence[Swallowed], num_watched: int) -> set[tuple[str, str | None]]:
    """Kinds of error that more than half of the samples keep inside: so the code asks its questions."""
    counts = Counter({(_kind(one), one.index) for one in swallowed if one.answered_row is None})
    by_kind = Counter(kind for kind, _ in counts)
    return {kind for kind, number in by_kind.items() if number > 4 and 2 * number > num_watched}


class _Consequences:
    """What was delivered in the place of what could not be read, as far as the other samples tell."""

    def __init__(self, reads: Sequence[SampleRead]) -> None:
        self._reads = {read.index: read for read in reads}
        self._owners = _owners(reads)
        self._digests = Counter(read.digest for read in reads if read.digest is not None)
        self._constant_share = sum(_is_constant(read) for read in reads) / max(1, len(reads))

    def add_to(self, one: Swallowed) -> Swallowed:
        read = self._reads[one.index]
        path = one.answered_path
        owner = None if path is None else self._owners.get(path)
        is_of_kind = path is not None and one.path is not None and _is_of_kind(one.path, path)
        is_other = (owner is not None and owner != one.index) or (is_of_kind and owner != one.index)
        return dataclasses.replace(
            one,
            answered_path=path if is_other else None,
            equal_to=self._twin(read),
            is_placeholder=_is_constant(read) and self._constant_share < 0.5,
            flagged_by=self._flag(read),
        )

    def _twin(self, read: SampleRead) -> SampleId | None:
        if read.digest is None or self._digests[read.digest] < 2:
            return None
        return next(
            other.sample_id
            for other in self._reads.values()
            if other.digest == read.digest and other.index != read.index
        )

    def _flag(self, read: SampleRead) -> str | None:
        """A boolean of the sample that most others have the other way."""
        for view in read.fields:
            if not _is_flag(view):
                continue
            others = [
                other.minimum
                for kept in self._reads.values()
                for other in kept.fields
                if other.field == view.field and kept.index != read.index
            ]
            if others and sum(value != view.minimum for value in others) > len(others) / 2:
                return view.field
        return None


def _is_flag(view: ValueView) -> bool:
    words = ("valid", "ok", "missing", "bad", "failed", "corrupt", "broken", "error", "present")
    is_named = any(word in view.field.lower() for word in words)
    return view.minimum is not None and view.minimum == view.maximum and (view.dtype == "bool" or is_named)


def _owners(reads: Sequence[SampleRead]) -> Mapping[str, int]:
    """The row of each file that only one row opens."""
    rows: dict[str, set[int]] = {}
    for read in reads:
        # A file that came last after a refusal may be another row's.
        files = [read.path] if read.refusals else [read.path, *(file.path for file in read.files)]
        for path in files:
            if path is not None:
                rows.setdefault(path, set()).add(read.index)
    return {path: next(iter(owners)) for path, owners in rows.items() if len(owners) == 1}


def _is_of_kind(path: str, other: str) -> bool:
    """True for two files of one folder, or of two folders side by side, with one extension."""
    one, two = pathlib.PurePath(path), pathlib.PurePath(other)
    return one.suffix == two.suffix and (one.parent == two.parent or one.parent.parent == two.parent.parent)
