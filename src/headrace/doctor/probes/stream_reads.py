"""Prepares samples of what can only be walked: in order from one pass, in one process, and then joins them.

The same records as `reads`, so that every rule about samples judges streams too. A pass ends where its code ends it:
what stands after a sample that failed may be out of reach.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from headrace.contract.view import view_sample
from headrace.doctor.evidence import CollateTrial, SampleRead
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import Ending, Lab
from headrace.doctor.lab.spies import describe_files
from headrace.doctor.probes.collation import Joined, form_of, join
from headrace.doctor.probes.contracts import ContractProbe
from headrace.doctor.probes.reads import Prepared, describe_end, describe_failure, view_fields
from headrace.doctor.stacks import is_user_code
from headrace.doctor.subject import Subject, Walk
from headrace.errors import SampleId

__all__ = ["JoinStream", "ReadStream", "Walked", "one_pass", "read_stream"]

REACH = 4
"""Samples are drawn up to this many times the number that is examined, so that the last quarter of them is spread."""
SPREAD_S = 10.0
"""Seconds for the draws beyond the first three quarters: most of them are passed over."""
MAX_FAILURES = 16
"""Failures in a row after which a pass is given up: an iterator that is broken may raise for ever."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last record of a pass."""

    num_drawn: int
    is_whole: bool
    """True if the pass came to its own end without a failure before it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadStream:
    """The experiment; yields a Prepared per examined sample, in their order, then one Ended."""

    name: ClassVar[str] = "reads"
    starts_processes: ClassVar[bool] = False

    limit: int | None
    """Samples that are examined: the first three quarters in a row, then a spread. None: all."""
    seed: int
    """Seeds the global generators before the pass."""
    contract: str | None = None
    """Path of a contract file."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Prepared | Ended]:
        """Walks; an exception is the result of its sample."""
        contract = ContractProbe(subject, self.contract)
        spare: list[Prepared] = []
        broken: list[Prepared] = []  # failures in a row, which may be the iterator's own
        num_examined, is_whole, has_failed = 0, False, False
        deadline: float | None = None
        with one_pass(subject, bench, self.seed) as walk:
            while self.limit is None or (num_examined < self.limit and walk.position < REACH * self.limit):
                place = walk.position
                if not self._is_first(place):
                    deadline = deadline or time.monotonic() + SPREAD_S
                    if time.monotonic() > deadline:
                        break
                one = _draw(walk, bench, contract)
                if one is None:
                    # A generator that raised has ended, whatever it had left.
                    is_whole = not has_failed
                    break
                if one.read.outcome == "ok":
                    yield from broken
                    broken.clear()
                    if self._is_chosen(place):
                        num_examined += 1
                        yield one
                    else:
                        spare.append(one)
                    continue
                num_examined += 1
                if not has_failed:
                    has_failed = True
                    yield one
                    continue
                broken.append(one)
                if len(broken) == MAX_FAILURES:
                    # Only what the user's own code raises is news: an iterator that has failed may raise for ever.
                    broken = [failed for failed in broken if failed.read.error_at is not None]
                    break
            num_drawn = walk.position
        yield from broken
        # A short stream, or a slow one: those that were passed over are there already.
        yield from spare[: max(0, (self.limit or 0) - num_examined)]
        yield Ended(num_drawn=num_drawn, is_whole=is_whole)

    def _is_chosen(self, place: int) -> bool:
        if self.limit is None:
            return True
        num_first = self.limit - self.limit // 4
        gap = max(1, (REACH * self.limit - num_first) // max(1, self.limit // 4))
        return self._is_first(place) or (place - num_first + 1) % gap == 0

    def _is_first(self, place: int) -> bool:
        return self.limit is None or place < self.limit - self.limit // 4


@contextlib.contextmanager
def one_pass(subject: Subject, bench: Bench, seed: int) -> Iterator[Walk]:
    """Begins a pass, which already runs the user's code, and closes it."""
    bench.reseed(seed, "stream")
    with bench.holding(None, None):
        bench.stop_listening()
        try:
            walk = subject.samples()
        except BaseException as error:  # no file, no index: then not even the first sample can be had
            walk = Walk(_Refuses(error))
    try:
        yield walk
    finally:
        with contextlib.suppress(Exception):
            walk.close()


class _Refuses(Iterator[Any]):
    """Stands for a pass that could not begin: raises what it raised, and ends."""

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def __next__(self) -> Any:
        error, self._error = self._error, None
        raise StopIteration if error is None else error


def _draw(walk: Walk, bench: Bench, contract: ContractProbe) -> Prepared | None:
    """Draws one sample, named before by its place; None: the pass has ended."""
    index = walk.position
    fields: Any = ()
    violations: Any = ()
    failure: dict[str, Any] = {}
    with bench.holding(index, walk.coming):
        try:
            sample = next(walk)
        except StopIteration:
            return None
        except BaseException as error:  # also sys.exit() in a sample
            failure = describe_failure(error, bench)
            if not _is_users(error):
                failure["error_at"] = None  # a line of the library that walks leads nowhere; the stack has it
        else:
            bench.stop_listening()
            fields, violations = view_fields(sample), contract.sample(sample, walk.key)
    files = describe_files(bench.opened)
    read = SampleRead(
        index=index,
        sample_id=walk.key,
        path=walk.path or next((file.path for file in files), None),
        outcome="error" if failure else "ok",
        stage=failure.pop("stage", "done"),
        wall_s=sum(bench.stage_s.values()),
        files=files,
        images=tuple(bench.images),
        fields=fields,
        **failure,
    )
    return Prepared(read=read, stage_s=bench.stage_s, violations=violations)


def _is_users(error: BaseException) -> bool:
    """True if the user's own code was running when it was raised."""
    return any(is_user_code(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JoinStream:
    """The experiment; yields one Joined: of chosen samples of a new pass, or of the first thing that is delivered."""

    name: ClassVar[str] = "collation"
    starts_processes: ClassVar[bool] = False

    indices: tuple[int, ...]
    """Places in the pass of the samples to join; how many, and what they are, counts: a pass may shuffle anew."""
    num_forms: int
    """Forms of sample (fields, shapes, dtypes) that the pass before has shown: one of each is looked for."""
    reach: int
    """Samples that are drawn at most."""
    seed: int
    contract: str | None = None
    """Path of a contract file."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Joined]:
        """Takes as many samples, of as many forms, out of a new pass; the generators are seeded as before."""
        if "join" in subject.cannot:
            yield from self._delivered(subject, bench)
            return
        function = subject.collate()  # may import torch: no deadline runs yet
        yield from join(function, self._prepare(subject, bench), subject, bench, self.seed, self.contract)

    def _prepare(self, subject: Subject, bench: Bench) -> list[tuple[SampleId, Any]]:
        """Returns the first sample of each form, then the first of the others, in the order of the pass."""
        size = len(self.indices)
        first: dict[Any, tuple[int, SampleId, Any]] = {}
        others: list[tuple[int, SampleId, Any]] = []
        with one_pass(subject, bench, self.seed) as walk:
            while walk.position < self.reach and not self._has_enough(len(first), len(others)):
                place = walk.position
                with bench.holding(place, walk.coming):
                    try:
                        sample = next(walk)
                    except StopIteration:
                        break
                    except Exception:  # the pass before has reported what it saw; this is about joining
                        if walk.position == place:
                            break
                        continue
                drawn = (place, walk.key, sample)
                form = form_of(view_fields(sample))
                if form not in first:
                    first[form] = drawn
                elif len(others) < size:
                    others.append(drawn)
        chosen = sorted([*first.values(), *others][:size], key=lambda drawn: drawn[0])
        return [(key, sample) for _, key, sample in chosen]

    def _has_enough(self, num_forms: int, num_others: int) -> bool:
        size = len(self.indices)
        return num_forms >= min(self.num_forms, size) and num_forms + num_others >= size

    def _delivered(self, subject: Subject, bench: Bench) -> Iterator[Joined]:
        """What comes first is what the loader makes of its samples."""
        bench.reseed(self.seed, "stream")
        name = "batch 0" if subject.is_batched else "#0"
        with bench.holding(0, name, stage="collate"):
            try:
                again = subject.num_workers and "workers" not in subject.cannot
                walk = Walk(iter(subject.with_workers(0)) if again else subject.epoch())
                batch = next(walk)
            except BaseException:  # the pass before has reported it; nothing is known about joining
                return
        trial = CollateTrial(
            collate=subject.collate_name,
            is_default=False,
            sample_ids=(name,),
            succeeded=True,
            batch_fields=view_sample(batch),
        )
        with contextlib.suppress(Exception):
            walk.close()
        violations = ContractProbe(subject, self.contract).batch(batch, ()) if subject.is_batched else ()
        yield Joined(trial=trial, wall_s=bench.stage_s["collate"], violations=violations)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What came of a pass."""

    prepared: tuple[Prepared, ...]
    """In the order of the pass."""
    num_samples: int
    """All there are, if the pass came to its end; else one more than were drawn, for the rest that was not seen."""
    is_whole: bool
    """True if the pass came to its own end, without a failure before it."""
    ending: Ending

    def joining(self, indices: tuple[int, ...], *, seed: int, contract: str | None) -> JoinStream:
        """Returns the experiment that joins samples like those at these places."""
        forms = {form_of(one.read.fields) for one in self.prepared if one.read.outcome == "ok"}
        reach = max((one.read.index + 1 for one in self.prepared), default=0)
        return JoinStream(indices=indices, num_forms=len(forms), reach=reach, seed=seed, contract=contract)

    @property
    def has_failed(self) -> bool:
        """True if a sample failed, so that another pass will too."""
        return any(one.read.outcome != "ok" for one in self.prepared)

    @property
    def detail(self) -> str:
        """`64 samples of a pass; 1 error`."""
        counts = collections.Counter(one.read.outcome for one in self.prepared)
        troubles = [f"{counts[outcome]} {outcome}" for outcome in ("error", "stuck", "crashed") if counts[outcome]]
        whole = "a whole pass" if self.is_whole else "a pass"
        return "; ".join([f"{len(self.prepared):,} samples of {whole}", *troubles])


def read_stream(lab: Lab, experiment: ReadStream, say: Callable[[str], None]) -> Walked:
    """Runs the experiment once. A sample that is stuck or ends the interpreter is the last one that can be reached."""
    tried: list[Prepared] = []
    ended: list[Ended] = []

    def receive(record: Prepared | Ended) -> None:
        if isinstance(record, Ended):
            ended.append(record)
            return
        tried.append(record)
        say(f"{len(tried):,} samples prepared")

    ending = lab.run(experiment, receive)
    if ending.outcome in {"stuck", "crashed"} and ending.mark is not None and ending.mark.index is not None:
        tried.append(Prepared(read=describe_end(ending, ending.mark, ending.mark.index), stage_s={}))
    tried.sort(key=lambda one: one.read.index)
    is_whole = bool(ended) and ended[0].is_whole
    num_drawn = ended[0].num_drawn if ended else max((one.read.index + 1 for one in tried), default=0)
    num_samples = num_drawn if is_whole else num_drawn + 1
    return Walked(prepared=tuple(tried), num_samples=num_samples, is_whole=is_whole, ending=ending)
