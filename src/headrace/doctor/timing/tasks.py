"""Changes what the workers of headrace's own loader do with a work order, and nothing else of it.

The copy of the loader has the user's data set, order, functions and runner. A runner executes a task, so the change goes
around the task: into whatever process or thread executes it, however it was started.

    loader ─▶ ChangedRunner ─▶ runner ─▶ worker: ChangedTask ─▶ the loader's own task
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute
from headrace.doctor.timing.fetchers import Spies

__all__ = ["OtherStages", "TaskChange", "preparation_of", "with_task_change"]

_KIND = "_headrace_kind"
"""Attribute of the copy's class: the class of the loader."""


class TaskChange:
    """What is changed. It pickles, if workers that are not forks are to have it."""

    def begin_worker(self, worker: int | None, num_workers: int) -> None:
        """In a worker, before its first order; None: in the loop itself."""

    def change_task(self, task: Any) -> None:
        """Where orders are executed, once for each task, which is a copy."""

    def around(self, run: Callable[[], Any], task: Any, order: Any) -> Any:  # noqa: ARG002 - for those who need them
        """Around the execution of an order; returns what it gave."""
        return run()

    def begin_run(self) -> None:
        """In the loop's process, before workers are started for a run of orders."""

    def result(self, task: Any, order: Any, delivery: Any) -> None:
        """In the loop's process: the result of an order is there, in the order of orders."""

    def delivered(self) -> None:
        """In the loop's process: the batch of the newest result is handed to the loop."""


def with_task_change(loader: Any, change: TaskChange) -> Any:
    """Returns a copy of a headrace DataLoader with a change; the loader itself is left as it is.

    Raises:
        CannotExamine: it chooses its workers while it runs.
    """
    if attribute(loader, "num_workers") == "auto":
        raise CannotExamine(
            "num_workers='auto' chooses while it runs, which looking into the workers would change; a number can be "
            "looked into"
        )
    twin = copy.copy(loader)
    runner = loader._runner
    if isinstance(runner, ChangedRunner):
        twin._runner = ChangedRunner(runner.runner, (*runner.changes, change))
    else:
        # A runner keeps its idle workers for one task.
        from headrace.engine.workers import make_runner

        fresh = make_runner(loader._arguments, loader.multiprocessing_context)
        twin._runner = ChangedRunner(fresh, (change,))
    twin._relay = None
    kind = type(loader)
    if kind.__dict__.get("_hand_over") is not _hand_over:
        names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
        twin.__class__ = type(kind.__name__, (kind,), {**names, "_hand_over": _hand_over, _KIND: kind})
    return twin


def _hand_over(loader: Any, run: Any) -> Iterator[Any]:
    """A method of the copy's class."""
    for batch in getattr(loader, _KIND)._hand_over(loader, run):
        for change in loader._runner.changes:
            change.delivered()
        yield batch


class ChangedRunner:
    """A runner that executes every task with changes."""

    def __init__(self, runner: Any, changes: tuple[TaskChange, ...]) -> None:
        self.runner, self.changes = runner, changes
        # One form of a task for all its runs: workers that persist serve the same object only.
        self._form: tuple[Any, ChangedTask] | None = None

    @property
    def name(self) -> str:
        """The runner's own."""
        return str(self.runner.name)

    @property
    def num_workers(self) -> int:
        """The runner's own."""
        return int(self.runner.num_workers)

    @property
    def max_in_flight(self) -> int:
        """The runner's own."""
        return int(self.runner.max_in_flight)

    def run(self, task: Any, orders: Iterable[Any]) -> Generator[Any, None, None]:
        """Yields the result of each order, in order."""
        if self._form is None or self._form[0] is not task:
            self._form = task, ChangedTask(copy.copy(task), self.changes)
        out = collections.deque[Any]()

        def given() -> Iterator[Any]:
            for order in orders:
                out.append(order)
                yield order

        for change in self.changes:
            change.begin_run()
        with contextlib.closing(self.runner.run(self._form[1], given())) as results:
            for delivery in results:
                order = out.popleft()
                for change in self.changes:
                    change.result(task, order, delivery)
                yield delivery
                del delivery  # the consumer's memory, not ours

    def close(self) -> None:
        """Ends idle workers."""
        self.runner.close()


class ChangedTask:
    """A task as its loader made it, with changes. Threads of one process share it."""

    def __init__(self, task: Any, changes: tuple[TaskChange, ...]) -> None:
        self.task, self.changes = task, changes
        self._is_changed = False

    def __reduce__(self) -> Any:
        # Spies first: what is pickled after them imports the user's modules.
        return _changed_task, (Spies(), self.task, self.changes)

    def open(self, worker: int | None, num_workers: int) -> None:
        """Readies this worker. Workers of one process open one after the other."""
        self.task.open(worker, num_workers)
        if not self._is_changed and preparation_of(self.task) is not None:
            self.task._preparation = copy.copy(self.task._preparation)  # without workers it is the loader's own
        for change in self.changes:
            change.begin_worker(worker, num_workers)
            if not self._is_changed:
                change.change_task(self.task)
        self._is_changed = True

    def run(self, order: Any, mark: Any) -> Any:
        """Executes an order."""
        run: Callable[[], Any] = functools.partial(self.task.run, order, mark)
        for change in self.changes:
            run = functools.partial(change.around, run, self.task, order)
        return run()

    def close(self) -> None:
        """As the task does."""
        self.task.close()

    def pinned_to(self, order: Any) -> int | None:
        """As the task says."""
        return self.task.pinned_to(order)  # type: ignore[no-any-return]

    def where(self, order: Any, item: int | None) -> Any:
        """As the task says."""
        return self.task.where(order, item)


def _changed_task(_: object, task: Any, changes: tuple[TaskChange, ...]) -> ChangedTask:
    return ChangedTask(task, changes)


def preparation_of(task: Any) -> Any:
    """Returns what prepares the samples of a task with row numbers; None: the task is of a stream."""
    return vars(task).get("_preparation")


class OtherStages:
    """Stands for the plan of a preparation, whose stages are applied in another way."""

    def __init__(self, plan: Any, apply_stages: Callable[..., Any]) -> None:
        self._plan, self.apply_stages = plan, apply_stages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def __len__(self) -> int:
        return len(self._plan)
