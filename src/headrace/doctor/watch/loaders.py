"""Sees every torch DataLoader of a process: where it was made, how it is walked through, and how long that waits.

Nothing is wrapped that could stand between the user and the loader: iterators, samplers, workers and their life are
the loader's own. What is looked at are the few attributes that torch's iterators set at each batch.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.passes import LoaderTraces
from headrace.doctor.evidence.stages import StageTimes
from headrace.doctor.watch.anew import predecessor
from headrace.doctor.watch.board import Board, Boards
from headrace.doctor.watch.drawn import Roots, below_subsets, shared_rows
from headrace.doctor.watch.frames import is_called_directly, user_calls, user_place
from headrace.doctor.watch.hooks import Hooks
from headrace.doctor.watch.likeness import likeness_of
from headrace.doctor.watch.loader_facts import epoch_holders, facts_of
from headrace.doctor.watch.meter import Meter
from headrace.doctor.watch.own_loader import hook_own_loader
from headrace.doctor.watch.record import LoaderFacts, LoaderRecord, PassRecord
from headrace.doctor.watch.timeline import Timeline
from headrace.doctor.watch.workers import WorkerLoop, hook_fetchers, measure_with
from headrace.machine import usable_cores

__all__ = ["LoaderObserver"]

MOST_LOADERS = 300
"""Loaders that are followed; a script that makes one for each step is understood by then."""
MOST_DEEP = 6
"""Frames from a hook up to the constructor of an iterator."""
_WALK = "_headrace_walk"
_MARK = "_headrace_mark"


class LoaderObserver:
    """Observer of torch's DataLoader and all its subclasses."""

    def __init__(self, timeline: Timeline, *, began_s: float | None = None) -> None:
        self.timeline = timeline
        self.began_s = time.perf_counter() if began_s is None else began_s
        self.on_batch: Callable[[float], None] | None = None
        """Called with the time after each batch."""
        self._hooks = Hooks()
        self._roots = Roots()
        self._records: list[LoaderRecord] = []
        self._known: dict[int, tuple[weakref.ref[Any], LoaderRecord]] = {}
        self._num_made = self._num_unlisted = 0
        self._hooked_kinds: set[type] = set()
        self._boards: Boards | None = None
        self._loop: WorkerLoop | None = None
        self._opening = threading.local()

    # The hooks.

    def install(self) -> None:
        """Hooks into torch's DataLoader, its iterators and its workers."""
        from torch.utils.data import DataLoader
        from torch.utils.data._utils import worker
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        hooks = self._hooks
        # The last thing that a DataLoader does while it is made.
        hooks.before(DataLoader, "check_worker_number_rationality", self._sees)
        hooks.before(DataLoader, "__iter__", self._opens)
        hooks.before(_BaseDataLoaderIter, "__next__", self._asks)
        hooks.after(_BaseDataLoaderIter, "_next_index", self._draws)
        hooks.attribute(_BaseDataLoaderIter, "_num_yielded", written=self._yields)
        hook_fetchers(hooks)
        self._boards = Boards()
        self._loop = WorkerLoop(worker._worker_loop, self._boards)
        hooks.replace(worker, "_worker_loop", self._loop)

    def install_own(self) -> None:
        """Hooks into headrace's loader, which may be there without torch's."""
        hook_own_loader(
            self._hooks, self._record, self._walked, self.timeline, lambda now: self.on_batch and self.on_batch(now)
        )

    def uninstall(self) -> None:
        """Takes the hooks away."""
        for record in self._records:
            self._release(record)
        self._hooks.remove()
        measure_with(None)
        if self._boards is not None:
            self._boards.close()
            self._boards = None

    def seen(self) -> tuple[Evidence, ...]:
        """Returns the loaders with their passes, and the time of their stages."""
        traces = [(record, record.trace(self.timeline, self.began_s)) for record in self._records]
        listed = [(record, trace) for record, trace in traces if trace is not None]
        stages = [record.stages(self.timeline) for record, _ in listed]
        began_s = self.timeline.weights_began_s
        return (
            LoaderTraces(
                script="",
                wall_s=time.perf_counter() - self.began_s,
                rank=0,
                world_size=1,
                loaders=tuple(trace for _, trace in listed),
                overlaps=tuple(self._overlaps([(record, trace.role) for record, trace in listed])),
                outcome="running",
                weights_began_s=None if began_s is None else began_s - self.began_s,
                num_unlisted=self._num_unlisted,
            ),
            StageTimes(
                loaders=tuple(stage for stage in stages if stage is not None),
                num_steps=self.timeline.num_steps,
                usable_cores=usable_cores(),
            ),
        )

    @staticmethod
    def _overlaps(listed: Sequence[tuple[LoaderRecord, str]]) -> list[tuple[int, int, int, tuple[int, ...]]]:
        found = []
        for trained in (record for record, role in listed if role == "train"):
            for read in (record for record, role in listed if role == "evaluation"):
                number, few = shared_rows(trained.drawn, read.drawn)
                if number:
                    found.append((trained.number, read.number, number, few))
        return found

    # What the hooks tell.

    def _sees(self, loader: Any) -> None:
        with contextlib.suppress(Exception):  # the user's loader is made, whatever the observer meets
            self._record(loader, where=user_place())
            self._hook_iter(type(loader))

    def _record(
        self, loader: Any, facts_of: Callable[[Any], LoaderFacts] = facts_of, where: str | None = None
    ) -> LoaderRecord | None:
        """The record of a loader, made at the first look; None beyond the number that is followed.

        Where it was made is only known if that is the first look.
        """
        known = self._known.get(id(loader))
        if known is not None and known[0]() is loader:
            return known[1]
        if len(self._records) >= MOST_LOADERS:
            self._num_unlisted += 1
            return None
        record = LoaderRecord(self._num_made, where, self._roots)
        self._num_made += 1
        record.calls = None if where is None else user_calls()
        self._belongs(loader, record)
        self._records.append(record)
        try:
            record.facts = facts_of(loader)
            for holder in epoch_holders(loader) if record.facts.has_set_epoch else ():
                record.epoch_holders.add(id(holder))
                self._hook_set_epoch(type(holder))
        except Exception:  # a subclass that hides what it is
            record.facts = None
        return record

    def _belongs(self, loader: Any, record: LoaderRecord) -> None:
        key = id(loader)
        self._known[key] = (weakref.ref(loader, lambda _: self._gone(key, record)), record)

    def _walked(self, loader: Any, facts_of: Callable[[Any], LoaderFacts] = facts_of) -> LoaderRecord | None:
        """The record of a loader that a walk begins through: that of an earlier one if it was made anew."""
        record = None if loader is None else self._record(loader, facts_of)
        if record is None or record.num_passes or record.calls is None or record.facts is None:
            return record
        try:
            record.likeness = likeness_of(
                loader.dataset, getattr(loader, "batch_sampler", None), getattr(loader, "sampler", None)
            )
            old = predecessor(record, self._records, self.timeline)
        except Exception:  # data that answer in an odd way: the loader stands for itself
            old = None
        if old is None:
            return record
        old.take_up(record)
        self._belongs(loader, old)
        self._records.remove(record)
        return old

    def _gone(self, key: int, record: LoaderRecord) -> None:
        """The loader was let go; an iterator of it may go on, as in `for batch in DataLoader(...)`."""
        known = self._known.get(key)
        if known is not None and known[1] is record:
            del self._known[key]
        record.is_gone = True

    def _board(self) -> Board | None:
        """A board for a loader; if all are taken, that of the loader that was let go first."""
        if self._boards is None:
            return None
        board = self._boards.take()
        if board is None:
            for record in self._records:
                if record.is_gone and record.board is not None:
                    self._release(record)
                    return self._boards.take()
        return board

    def _release(self, record: LoaderRecord) -> None:
        if record.board is not None and self._boards is not None:
            board = record.leave_board()
            if board is not None:
                self._boards.give_back(board)

    def _hook_iter(self, kind: type) -> None:
        """Hooks into the `__iter__` of a subclass, which need not call that of DataLoader."""
        from torch.utils.data import DataLoader

        for base in kind.__mro__[: kind.__mro__.index(DataLoader)]:
            if "__iter__" in vars(base) and base not in self._hooked_kinds:
                self._hooked_kinds.add(base)
                self._hooks.before(base, "__iter__", self._opens)

    def _opens(self, loader: Any) -> None:
        try:
            opening = getattr(self._opening, "now", None)
            if opening is not None and opening[3] == id(loader):  # a subclass passes the call on
                return
            self._opening.now = None
            record = self._walked(loader)
            if record is None or record.facts is None:
                return
            place = user_place()
            if place is not None:
                record.places[place] += 1
            record.num_library_passes += not is_called_directly()
            self._opening.now = (record, time.perf_counter(), id(loader.dataset), id(loader))
        except Exception:
            self._opening.now = None

    def _begins(self, iterator: Any) -> None:
        """`iter(loader)` makes an iterator, or resets the one of persistent workers."""
        opening = getattr(self._opening, "now", None)
        known = iterator.__dict__.get(_WALK)
        if known is not None and known.num_asked == known.num_before == 0:  # torch sets the counter to 0 twice
            return
        iterator.__dict__[_WALK] = iterator.__dict__[_MARK] = None
        dataset = iterator.__dict__.get("_dataset")
        if opening is not None and opening[2] == id(dataset):
            self._opening.now = None
            record, started_s, _, _ = opening
        else:
            record, started_s = self._walked(_loader_of(iterator)), time.perf_counter()
        if record is None or record.facts is None:
            return
        facts: LoaderFacts = record.facts
        self.timeline.walk_begins()
        walk = record.begin(started_s, self.timeline.num_steps)
        walk.iterator = weakref.ref(iterator)
        num_workers = iterator.__dict__.get("_num_workers", 0)
        is_new = "_task_info" not in iterator.__dict__
        walk.num_workers_started += num_workers if is_new else 0
        if record.board is None:
            record.board = self._board()
        if self._loop is not None:
            self._loop.board = record.board
        if not num_workers and record.board is not None:
            walk.meter = Meter(record.board.worker(0))
        if num_workers and not facts.in_order:
            walk.coming = None
        walk.name_rows = below_subsets(dataset)
        if record.drawn.is_known and record.drawn.count != facts.num_samples:  # else nothing new can come
            iterator.__dict__[_MARK] = record.drawn.follow(dataset)
        iterator.__dict__[_WALK] = walk

    def _asks(self, iterator: Any) -> None:
        walk: PassRecord | None = iterator.__dict__.get(_WALK)
        if walk is not None:
            if not walk.num_asked:
                self._is_opened(walk)
            walk.ask(time.perf_counter())
            if walk.meter is not None:
                measure_with(walk.meter)

    def _is_opened(self, walk: PassRecord) -> None:
        """An iterator that was made before `iter(loader)`, for its state, is handed out by it: the walk begins there."""
        opening, self._opening.now = getattr(self._opening, "now", None), None
        if opening is not None and opening[0] is walk.owner:
            walk.started_s = walk.asked_s = walk.got_s = opening[1]

    def _draws(self, iterator: Any, index: Any) -> Any:
        walk: PassRecord | None = iterator.__dict__.get(_WALK)
        try:
            if walk is not None:
                rows = _rows(index, iterator)
                walk.draw(rows)
                mark = iterator.__dict__.get(_MARK)
                if rows is None:
                    walk.owner.drawn.lose()
                elif mark is not None:
                    mark(rows)
        except Exception:  # sample numbers that are none
            iterator.__dict__[_MARK] = None
            if walk is not None:
                walk.owner.drawn.lose()
        return index

    def _yields(self, iterator: Any, number: int) -> None:
        try:
            if number == 0:
                self._begins(iterator)
                return
            walk: PassRecord | None = iterator.__dict__.get(_WALK)
            if walk is not None and not walk.num_asked:  # it goes on from a state
                walk.num_before = number
            if walk is None or number - walk.num_before != walk.num_batches + 1:
                return
            meter = walk.meter
            now = time.perf_counter() if meter is None else meter.end()
            record = walk.owner
            if (
                number > 1
                and record.board is not None
                and walk.meter is None
                and iterator.__dict__.get("_in_order", True)
            ):
                ready_s = record.board.ready_s(iterator.__dict__["_rcvd_idx"] - 1)
                if ready_s is not None and walk.started_s <= ready_s <= now:
                    cpu_s = time.process_time() - walk.asked_cpu_s
                    record.waits.add_handover(now - max(walk.asked_s, ready_s), cpu_s)
            walk.hand_over(now)
            self.timeline.handed_over(record.number, walk.next_ids())
            if self.on_batch is not None:
                self.on_batch(now)
        except Exception:
            iterator.__dict__[_WALK] = None

    def _hook_set_epoch(self, kind: type) -> None:
        owner = next((base for base in kind.__mro__ if "set_epoch" in vars(base)), None)
        if owner is None or getattr(vars(owner)["set_epoch"], "is_headraces", False):
            return
        original = vars(owner)["set_epoch"]

        def set_epoch(holder: Any, *args: Any, **kwargs: Any) -> Any:
            for record in self._records:
                if id(holder) in record.epoch_holders and (args or kwargs):
                    record.epochs.add(repr([*args, *kwargs.values()][0])[:40])
            return original(holder, *args, **kwargs)

        set_epoch.is_headraces = True  # type: ignore[attr-defined]
        set_epoch.__wrapped__ = original  # type: ignore[attr-defined]
        self._hooks.replace(owner, "set_epoch", set_epoch)


def _loader_of(iterator: Any) -> Any:
    """The loader for which an iterator is being made or reset, where nobody called `iter`; None: not found.

    torchdata's loader makes one when it is asked for its state, and a second one if it goes on from the end of an epoch.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_DEEP):
        if frame is None:
            return None
        names = frame.f_code.co_varnames
        if frame.f_code.co_name in ("__init__", "_reset") and names[:2] == ("self", "loader"):
            found = frame.f_locals
            if found.get("self") is iterator:
                return found.get("loader")
        frame = frame.f_back
    return None


def _rows(index: Any, iterator: Any) -> Sequence[int] | None:
    """Sample numbers of one batch as plain integers; None for a stream, and for samplers that give anything else."""
    if iterator.__dict__.get("_dataset_kind") != 0:  # _DatasetKind.Map
        return None
    if type(index) is int:
        return [index]
    if not isinstance(index, (list, tuple)):
        index = index.tolist() if hasattr(index, "tolist") else None
        return [index] if type(index) is int else index
    first = index[0] if index else 0
    if type(first) is int:
        return index
    return [row.__index__() for row in index] if hasattr(first, "__index__") else None
