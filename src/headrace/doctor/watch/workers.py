"""Brings the meter into the workers of a torch DataLoader, whether they are forked, spawned, or come from a fork server.

The worker's main function is replaced by an object that calls it. A forked worker has it by inheritance, any other one
gets it by pickle, together with the memory that it writes to.
"""

from __future__ import annotations

from typing import Any

from headrace.doctor.watch.board import MAX_WORKERS, Board, Boards
from headrace.doctor.watch.hooks import Hooks
from headrace.doctor.watch.meter import Meter

__all__ = ["WorkerLoop", "hook_fetchers", "measure_with"]

_active: Meter | None = None
"""Meter of the batch that this process prepares now: a worker has one for life, the training process one per loader."""


def measure_with(meter: Meter | None) -> None:
    """The next batch that is prepared in this process is told to this meter."""
    global _active
    _active = meter


def _begins(_: Any) -> None:
    if _active is not None:
        _active.begin()


def _joins(_: Any) -> None:
    if _active is not None:
        _active.join()


def _is_made(_: Any, __: Any) -> None:
    if _active is not None:
        _active.begin_pass()


def hook_fetchers(hooks: Hooks) -> None:
    """Hooks into what makes a batch out of sample numbers."""
    from torch.utils.data._utils.fetch import _BaseDatasetFetcher

    hooks.attribute(_BaseDatasetFetcher, "auto_collation", read=_begins, written=_is_made)
    hooks.attribute(_BaseDatasetFetcher, "collate_fn", read=_joins)


class WorkerLoop:
    """Stands for torch's `_worker_loop`, with the board of the loader whose workers start now."""

    def __init__(self, loop: Any, boards: Boards) -> None:
        self.loop = loop
        self.boards = boards
        self.board: Board | None = None

    def __call__(self, *args: Any) -> None:
        """Runs in the worker. The places of torch's arguments are the same since its version 1.8."""
        if self.board is not None:
            try:
                self._measure(data_queue=args[3], worker=args[10])
            except Exception:  # another version's arguments: the worker works, and is not seen
                measure_with(None)
        self.loop(*args)

    def _measure(self, data_queue: Any, worker: int) -> None:
        if self.board is None or not 0 <= worker < MAX_WORKERS:
            return
        board, meter = self.board, Meter(self.board.worker(worker))
        if not _has_hooks():  # started afresh: the hooks of the training process are not here
            hook_fetchers(Hooks())
        put = data_queue.put

        def put_and_note(item: Any, *args: Any, **kwargs: Any) -> Any:
            if type(item) is tuple and len(item) == 2 and type(item[0]) is int:
                board.note_ready(item[0], meter.end(item[1]))
            return put(item, *args, **kwargs)

        data_queue.put = put_and_note
        measure_with(meter)

    def __reduce__(self) -> Any:
        # Without the loop: this object stands under its name, so pickle would not find it.
        return _rebuilt, (self.boards, None if self.board is None else self.board.number)


def _rebuilt(boards: Boards, number: int | None) -> WorkerLoop:
    from torch.utils.data._utils import worker

    found: Any = worker._worker_loop
    made = WorkerLoop(found.loop if isinstance(found, WorkerLoop) else found, boards)
    made.board = None if number is None else boards.board(number)
    return made


def _has_hooks() -> bool:
    from torch.utils.data._utils.fetch import _BaseDatasetFetcher

    return "collate_fn" in vars(_BaseDatasetFetcher)
