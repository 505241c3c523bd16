"""What is kept of one loader and of its passes: numbers, and nothing that would keep the user's objects alive."""

from __future__ import annotations

import collections
import dataclasses
import math
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal

from headrace.doctor.evidence.passes import LoaderTrace, PassTrace
from headrace.doctor.evidence.stages import MOST_OF_WAITING, StageTrace, WorkerTrace
from headrace.doctor.watch.board import Board, Slot
from headrace.doctor.watch.drawn import Drawn, Roots
from headrace.doctor.watch.likeness import Likeness
from headrace.doctor.watch.meter import Meter
from headrace.doctor.watch.timeline import Timeline
from headrace.doctor.watch.waits import Longest, Waits

__all__ = ["LoaderFacts", "LoaderRecord", "PassRecord"]

KEPT = 50
"""Passes kept from the beginning and from the end."""
Role = Literal["train", "evaluation", "unused", "unknown"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoaderFacts:
    """What a loader says of itself."""

    kind: str
    dataset_kind: str
    num_samples: int | None
    batch_size: int | None
    drop_last: bool
    num_workers: int
    prefetch_factor: int | None
    persistent_workers: bool
    sampler_kind: str
    shuffles: bool
    has_set_epoch: bool
    is_distributed: bool
    in_order: bool = True
    """False: batches come as workers have them ready."""


class PassRecord:
    """One walk through a loader, while it happens."""

    __slots__ = (
        "asked_cpu_s",
        "asked_s",
        "coming",
        "first_hash",
        "first_wait_s",
        "got_s",
        "is_left",
        "is_made_anew",
        "iterator",
        "longest",
        "meter",
        "name_rows",
        "num_asked",
        "num_batches",
        "num_before",
        "num_drawn",
        "num_indexed",
        "num_samples",
        "num_workers_started",
        "order_hash",
        "owner",
        "started_s",
        "steps_at_start",
        "wait_s",
    )

    def __init__(self, owner: LoaderRecord, started_s: float, steps_at_start: int) -> None:
        self.owner = owner
        self.started_s = self.asked_s = self.got_s = started_s
        self.asked_cpu_s = 0.0
        self.steps_at_start = steps_at_start
        self.first_wait_s = self.wait_s = 0.0
        self.longest = Longest()
        self.num_batches = self.num_asked = 0
        self.num_before = 0
        """Batches of the epoch that an earlier walk took: this one goes on from its state."""
        self.num_drawn = self.num_indexed = self.num_samples = 0
        self.order_hash: int | None = 0
        self.first_hash: int | None = None
        self.num_workers_started = 0
        self.is_made_anew = False
        self.iterator: weakref.ref[Any] | None = None
        self.is_left = False
        """True once it is known that nobody will ask for more."""
        self.meter: Meter | None = None
        self.name_rows: Callable[[Sequence[int]], tuple[int, ...]] = tuple
        """Turns what the sampler gives into the names of samples: rows of the data set under the Subsets."""
        self.coming: collections.deque[tuple[int, ...] | None] | None = collections.deque()
        """Sample numbers of the batches under way, in their order; None: batches come in any order."""

    def ask(self, now: float) -> None:
        """The loop asks for a batch."""
        if self.num_batches > 1 and self.num_asked == self.num_batches:
            self.owner.waits.add(self.got_wait, now - self.got_s)
        self.asked_s = now
        self.asked_cpu_s = time.process_time()
        self.num_asked += 1

    @property
    def got_wait(self) -> float:
        """Seconds that the newest batch was waited for."""
        return self.got_s - self.asked_s

    def hand_over(self, now: float) -> None:
        """The loop gets a batch."""
        self.got_s = now
        self.num_batches += 1
        if self.num_batches == 1:
            self.first_wait_s = now - self.started_s
            return
        wait_s = now - self.asked_s
        self.wait_s += wait_s
        if wait_s > self.longest.least_s:
            self.longest.add(wait_s)

    def draw(self, rows: Sequence[int] | None) -> None:
        """The sampler gives the numbers of one batch; None: they cannot be read."""
        self.num_drawn += 1
        drawn = None if rows is None else tuple(rows)
        if self.coming is not None:
            self.coming.append(None if drawn is None else self.name_rows(drawn))
        if drawn is None:
            self.order_hash = None
            return
        self.num_samples += len(drawn)
        self.owner.num_samples_drawn += len(drawn)
        self.owner.num_batches_drawn += 1
        self.num_indexed += 1
        if self.order_hash is not None:
            try:
                self.order_hash = hash((self.order_hash, drawn))
            except TypeError:
                self.order_hash = None
        if self.num_indexed == 1:
            self.first_hash = self.order_hash

    def next_ids(self) -> tuple[int, ...] | None:
        """Returns the sample numbers of the batch that is handed over; None if they are not known."""
        return self.coming.popleft() if self.coming else None

    @property
    def is_exhausted(self) -> bool:
        """True if a batch was asked for and there was none left."""
        is_unanswered = self.num_asked > self.num_batches
        return is_unanswered and (not self.num_indexed or self.num_batches >= self.num_drawn)

    @property
    def has_ended(self) -> bool:
        """True if no batch of it can come any more: there are none left, or its iterator is gone."""
        is_gone = self.iterator is not None and self.iterator() is None
        return is_gone or self.is_left or self.is_exhausted

    def trace(self, began_s: float, num_steps: int) -> PassTrace:
        """Returns what is known by now."""
        return PassTrace(
            started_s=self.started_s - began_s,
            wall_s=max(self.asked_s, self.got_s) - self.started_s,
            first_wait_s=self.first_wait_s,
            wait_s=self.wait_s,
            longest_waits_s=self.longest.values,
            num_batches=self.num_batches,
            num_samples=self.num_samples if self.num_indexed == self.num_drawn and self.num_drawn else None,
            is_exhausted=self.is_exhausted,
            order_hash=self.order_hash if self.num_indexed else None,
            num_worker_starts=self.num_workers_started,
            num_steps=num_steps - self.steps_at_start,
            first_batch_hash=self.first_hash,
            is_made_anew=self.is_made_anew,
        )


class LoaderRecord:
    """One loader: an object, or several that one place of the script made one after another over the same data."""

    def __init__(self, number: int, where: str | None, roots: Roots) -> None:
        self.number = number
        self.where = where
        self.made_s = time.perf_counter()
        self.calls: tuple[tuple[str, int, int], ...] | None = None
        """The user's calls under way when it was made; None: not seen."""
        self.likeness: Likeness | None = None
        """Of its data, from the first walk on; None: there was none yet, or it cannot be made anew."""
        self.num_made = 1
        self._is_new = False
        self.facts: LoaderFacts | None = None
        self.waits = Waits()
        self.drawn = Drawn(roots)
        self.board: Board | None = None
        self.is_gone = False
        self._sums: list[list[float]] | None = None
        """What the workers wrote to boards that went to other loaders since."""
        self.places: collections.Counter[str] = collections.Counter()
        self.epochs: set[Any] = set()
        self.epoch_holders: set[int] = set()
        self.num_samples_drawn = self.num_batches_drawn = 0
        self.num_passes = self.num_library_passes = 0
        self.num_batches = self.num_worker_starts = self.num_short = 0
        self.first_hashes: set[int | None] = set()
        self._first: list[PassTrace] = []
        self._last: collections.deque[PassTrace] = collections.deque(maxlen=KEPT)
        self.current: PassRecord | None = None

    def begin(self, now: float, num_steps: int) -> PassRecord:
        """A walk begins; the one before is over."""
        num_started = 0
        if self.current is not None and self.current.num_before and not self.current.num_asked:
            # It went on from the end of an epoch, where there is nothing to walk through.
            num_started = self.current.num_workers_started
            self.num_passes -= 1
            self.current = None
        self.close(num_steps)
        self.num_passes += 1
        self.current = PassRecord(self, now, num_steps)
        self.current.is_made_anew, self._is_new = self._is_new, False
        self.current.num_workers_started = num_started
        return self.current

    def take_up(self, made: LoaderRecord) -> None:
        """Goes on with a loader that was made in its place and has not been walked through yet."""
        self.num_made += 1
        self._is_new = True
        self.is_gone = False
        self.likeness, self.epoch_holders = made.likeness, made.epoch_holders
        self.epochs |= made.epochs
        self.drawn.is_renewed = True

    @property
    def last_start_s(self) -> float:
        """When its newest walk began."""
        return -math.inf if self.current is None else self.current.started_s

    @property
    def last_seen_s(self) -> float:
        """When it was last asked for a batch, or handed one over; never: minus infinity."""
        return -math.inf if self.current is None else max(self.current.asked_s, self.current.got_s)

    @property
    def has_ended(self) -> bool:
        """True if no batch of its newest walk can come any more."""
        return self.current is not None and self.current.has_ended

    @property
    def is_complete(self) -> bool:
        """True if its newest walk handed over all batches that its data set has, whether or not more are asked for."""
        facts, walk = self.facts, self.current
        if facts is None or walk is None or not facts.num_samples or not facts.batch_size:
            return False
        whole, rest = divmod(facts.num_samples, facts.batch_size)
        return walk.num_batches >= whole + (rest > 0 and not facts.drop_last)

    def close(self, num_steps: int) -> None:
        """The current walk will not go on."""
        if self.current is None:
            return
        trace = self.current.trace(0.0, num_steps)
        (self._first if len(self._first) < KEPT else self._last).append(trace)
        self._count(trace)
        self.current = None

    def _count(self, trace: PassTrace) -> None:
        self.num_worker_starts += trace.num_worker_starts
        self.num_short += trace.num_batches <= 1 and not trace.is_exhausted
        self.num_batches += trace.num_batches
        if trace.num_batches and len(self.first_hashes) < 2:
            self.first_hashes.add(trace.first_batch_hash)

    def leave_board(self) -> Board | None:
        """Copies what the workers wrote, before the board goes to another loader; returns the board."""
        self._sums = self._all_sums()
        board, self.board = self.board, None
        return board

    def _all_sums(self) -> list[list[float]] | None:
        """The sums of each worker, over all boards that it had."""
        if self.board is None or self.facts is None:
            return self._sums
        board, number = self.board, max(1, self.facts.num_workers)
        newest = [list(board.worker(worker)) for worker in range(number)]
        if self._sums is None:
            return newest
        return [
            [one + other for one, other in zip(*pair, strict=True)] for pair in zip(self._sums, newest, strict=True)
        ]

    def role(self, timeline: Timeline) -> Role:
        """What it is for, as far as the steps of the optimizers show it."""
        num_batches = self.num_batches + (0 if self.current is None else self.current.num_batches)
        if num_batches == 0:
            return "unused"
        if timeline.num_steps == 0 or timeline.is_recalibrated_on(self.number):
            return "unknown"
        return "train" if timeline.is_trained_on(self.number, num_batches) else "evaluation"

    def trace(self, timeline: Timeline, began_s: float) -> LoaderTrace | None:
        """Returns what is known of it; None if it never was looked at."""
        facts = self.facts
        if facts is None:
            return None
        passes = [dataclasses.replace(one, started_s=one.started_s - began_s) for one in (*self._first, *self._last)]
        starts, short, hashes = self.num_worker_starts, self.num_short, set(self.first_hashes)
        if self.current is not None:
            newest = self.current.trace(began_s, timeline.num_steps)
            passes.append(newest)
            starts += newest.num_worker_starts
            short += newest.num_batches <= 1 and not newest.is_exhausted and (self.is_gone or self.num_passes > 1)
            hashes |= {newest.first_batch_hash} if newest.num_batches else set()
        fetched = self._fetched()
        num_prepared = sum(sums[Slot.BATCHES] for sums in fetched)
        return LoaderTrace(
            number=self.number,
            where=self.where,
            kind=facts.kind,
            role=self.role(timeline),
            dataset_kind=facts.dataset_kind,
            num_samples=facts.num_samples,
            batch_size=facts.batch_size,
            drop_last=facts.drop_last,
            num_workers=facts.num_workers,
            persistent_workers=facts.persistent_workers,
            sampler_kind=facts.sampler_kind,
            shuffles=facts.shuffles,
            has_set_epoch=facts.has_set_epoch,
            num_set_epochs=len(self.epochs),
            is_distributed=facts.is_distributed,
            iter_places=tuple(self.places.most_common(20)),
            passes=tuple(passes),
            num_passes=self.num_passes,
            num_made=self.num_made,
            num_drawn=self.drawn.count if self.drawn.is_known else 0,
            root=self.drawn.root,
            num_worker_starts=starts,
            num_short_passes=short,
            num_library_passes=self.num_library_passes,
            batch_s=sum(sums[Slot.FETCH_S] + sums[Slot.COLLATE_S] for sums in fetched) / num_prepared
            if num_prepared
            else None,
            has_moved_samples=None if None in hashes or self.num_passes < 2 else len(hashes) > 1,
        )

    def stages(self, timeline: Timeline) -> StageTrace | None:
        """Returns where its time went; None if it handed over nothing."""
        facts, waits = self.facts, self.waits
        if facts is None or not waits.num_steps:
            return None
        num_worst, worst_wait_s = waits.worst(0.02)
        fetched = self._fetched()
        total = [sum(column) for column in zip(*fetched, strict=True)] if fetched else [0.0] * Slot.COUNT
        detailed_s = total[Slot.DETAILED_S]
        return StageTrace(
            loader=self.number,
            where=self.where,
            role=self.role(timeline),
            num_workers=facts.num_workers,
            prefetch_factor=facts.prefetch_factor,
            num_batches=waits.num_steps,
            loop_s=waits.wait_s + waits.own_s,
            wait_s=waits.wait_s,
            median_wait_s=waits.median_wait_s,
            median_step_s=waits.median_own_s,
            wait_shares=waits.shares,
            worst_wait_s=worst_wait_s,
            num_worst=num_worst,
            num_holding=waits.num_holding(MOST_OF_WAITING),
            num_waited=waits.num_longer(waits.median_own_s / 20),
            handover_s=waits.handover_s if waits.num_handovers >= 0.9 * waits.num_steps else None,
            handover_cpu_s=waits.handover_cpu_s if waits.num_handovers >= 0.9 * waits.num_steps else None,
            num_measured=round(total[Slot.BATCHES]),
            num_samples=round(total[Slot.BATCHES] * self.samples_per_batch),
            fetch_s=total[Slot.FETCH_S],
            fetch_cpu_s=total[Slot.FETCH_CPU_S],
            fetch_queued_s=total[Slot.QUEUED_S] / detailed_s * total[Slot.FETCH_S] if detailed_s else None,
            collate_s=total[Slot.COLLATE_S],
            batch_bytes=total[Slot.BYTES] / total[Slot.SIZED] if total[Slot.SIZED] else None,
            workers=tuple(
                WorkerTrace(
                    num_batches=round(sums[Slot.BATCHES]),
                    fetch_s=sums[Slot.FETCH_S],
                    fetch_cpu_s=sums[Slot.FETCH_CPU_S],
                    collate_s=sums[Slot.COLLATE_S],
                    typical_s=math.exp(sums[Slot.LOG_S] / sums[Slot.BATCHES]) if sums[Slot.BATCHES] else 0.0,
                    idle_s=sums[Slot.IDLE_S],
                )
                for sums in (fetched if facts.num_workers else ())
            ),
        )

    @property
    def samples_per_batch(self) -> float:
        """On average, as the sampler gave them."""
        if self.num_batches_drawn:
            return self.num_samples_drawn / self.num_batches_drawn
        return float(1 if self.facts is None else self.facts.batch_size or 1)

    def _fetched(self) -> list[list[float]]:
        """The sums of each worker; empty if nothing was measured."""
        found = self._all_sums()
        return [] if found is None or not any(sums[Slot.BATCHES] for sums in found) else found
