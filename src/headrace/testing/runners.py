"""RunnerSuite: the exam for anyone's `Runner`.

    class TestMyRunner(RunnerSuite):
        starts_processes = True

        def make_runner(self, num_workers, **options):
            return MyRunner(num_workers, **options)

The oracle is the plain loop `[task.run(order) for order in orders]`. Every test also demands that afterwards no
process, thread, descriptor or shared memory is left. No test depends on how long something takes: what must happen
first opens a latch for what must happen second.
"""

from __future__ import annotations

import collections
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from headrace.testing import tasks
from headrace.testing.leftovers import nothing_left
from headrace.testing.runner_faults import RunnerFaults
from headrace.testing.tasks import Act, ActTask, Latch

__all__ = ["RunnerSuite"]


class RunnerSuite(RunnerFaults):
    """Subclass it in a test module and say how to make the runner."""

    worker_counts: ClassVar[tuple[int, ...]] = (1, 2, 3)
    """Numbers of workers to examine; (0,) for a runner that executes in the caller."""
    can_persist: ClassVar[bool] = False
    """True if `make_runner` takes `persistent=True`."""

    @pytest.fixture(autouse=True)
    def _leaves_nothing(self) -> Iterator[None]:
        with nothing_left():
            yield

    @pytest.fixture
    def num_workers(self) -> int:
        """Two workers where there are any: the fewest that can come in each other's way."""
        return min(2, max(self.worker_counts))

    # ---- the same as the plain loop ---------------------------------------------------------------------------------

    def test_same_results_in_the_same_order_with_the_same_bytes(self) -> None:
        """For every number of workers, the results are those of the plain loop."""
        orders = [Act(do=tasks.make_arrays, value=value) for value in range(13)]
        expected = [tasks.make_arrays(ActTask(), order, lambda _: None) for order in orders]
        for num_workers in self.worker_counts:
            results = list(self.make_runner(num_workers).run(ActTask(), orders))
            assert len(results) == len(expected)
            for result, twin in zip(results, expected, strict=True):
                _assert_same_bytes(result, twin)

    def test_no_orders_no_results(self, num_workers: int, tmp_path: Path) -> None:
        """Without orders, workers still open and close the task, and nothing comes."""
        journal = tmp_path / "journal"
        assert list(self.make_runner(num_workers).run(ActTask(journal), [])) == []
        assert _journal(journal) == _both_ways(num_workers)

    def test_order_holds_whatever_finishes_first(self, num_workers: int, tmp_path: Path) -> None:
        """A result that is ready early waits for its turn."""
        if num_workers < 2:
            pytest.skip("one after another")
        last = Latch(tmp_path / "last")
        orders = [
            Act(do=tasks.square, value=3, latch=last),
            Act(do=tasks.square, value=4, opens=last),
            Act(do=tasks.square, value=5),
        ]
        assert list(self.make_runner(num_workers).run(ActTask(), orders)) == [9, 16, 25]

    def test_a_slow_order_holds_back_only_its_own_worker(self, num_workers: int, tmp_path: Path) -> None:
        """While one worker is busy, the other goes on."""
        if num_workers < 2:
            pytest.skip("one after another")
        # The first order waits for the last one that fits: all others must pass by on the other worker.
        last = Latch(tmp_path / "last")
        runner = self.make_runner(num_workers, prefetch_factor=1)
        orders = [Act(do=tasks.square, value=1, latch=last, pin=0), Act(do=tasks.square, value=2, opens=last, pin=1)]
        assert list(runner.run(ActTask(), orders)) == [1, 4]

    def test_pinned_orders_go_to_their_worker(self, num_workers: int) -> None:
        """An order that names a worker waits for that one, even if others are idle."""
        if num_workers < 2:
            pytest.skip("no choice")
        pins = [1, 1, 1, 1, 1, 1, 0, 0, 0, 1]  # more in a row than one worker may hold
        orders = [Act(do=tasks.name_worker, pin=pin) for pin in pins]
        assert list(self.make_runner(num_workers).run(ActTask(), orders)) == pins

    def test_orders_are_taken_lazily_and_only_in_the_consumers_thread(self, num_workers: int) -> None:
        """At most `max_in_flight` orders are taken ahead, by the thread that asks for results."""
        runner = self.make_runner(num_workers)
        taken, threads = 0, set()

        def orders() -> Iterator[Act]:
            nonlocal taken
            for value in range(40):
                taken += 1
                threads.add(threading.current_thread())
                yield Act(do=tasks.square, value=value)

        results = runner.run(ActTask(), orders())
        assert taken == 0
        for num_received, result in enumerate(results, start=1):
            assert result == (num_received - 1) ** 2
            # The first result had `max_in_flight` orders taken for it, and each further result one more.
            assert num_received <= taken <= num_received - 1 + runner.max_in_flight
        assert taken == 40
        assert threads == {threading.current_thread()}

    def test_two_live_runs_do_not_disturb_each_other(self, num_workers: int) -> None:
        """Two runs of one runner, advanced in turn, each give their own results."""
        runner = self.make_runner(num_workers)
        up = runner.run(ActTask(), [Act(do=tasks.square, value=v) for v in range(8)])
        down = runner.run(ActTask(), [Act(do=tasks.square, value=v) for v in range(8, 0, -1)])
        assert list(zip(up, down, strict=True)) == [(v**2, (8 - v) ** 2) for v in range(8)]

    # ---- the end ----------------------------------------------------------------------------------------------------

    def test_every_worker_opens_and_closes_the_task_once(self, num_workers: int, tmp_path: Path) -> None:
        """`open` before the first order and `close` after the last, in each worker."""
        journal = tmp_path / "journal"
        orders = [Act(do=tasks.square, value=value) for value in range(7)]
        assert len(list(self.make_runner(num_workers).run(ActTask(journal), orders))) == 7
        assert _journal(journal) == _both_ways(num_workers)

    def test_breaking_off_ends_the_run(self, num_workers: int) -> None:
        """`close()` on the iterator leaves nothing behind."""
        with nothing_left():
            results = self.make_runner(num_workers).run(ActTask(), (Act(do=tasks.square, value=v) for v in range(99)))
            assert [next(results), next(results)] == [0, 1]
            results.close()  # type: ignore[attr-defined] # the protocol promises a generator

    def test_forgetting_the_iterator_ends_the_run(self, num_workers: int) -> None:
        """Garbage collection of the iterator leaves nothing behind."""
        with nothing_left():
            results = self.make_runner(num_workers).run(ActTask(), (Act(do=tasks.square, value=v) for v in range(99)))
            next(results)
            cycle: list[Any] = [results]  # as in a loader that holds its iterator: only the collector can find it
            cycle.append(cycle)
            del results, cycle
            gc.collect()

    # ---- persistent workers -----------------------------------------------------------------------------------------

    def test_persistent_workers_serve_the_next_run(self, num_workers: int, tmp_path: Path) -> None:
        """The same workers serve run after run, even after one was broken off, until `close`."""
        if not self.can_persist:
            pytest.skip("not offered")
        journal = tmp_path / "journal"
        task = ActTask(journal)
        runner = self.make_runner(num_workers, persistent=True)
        for num_orders in (5, 0, 3):
            orders = [Act(do=tasks.square, value=v) for v in range(num_orders)]
            assert list(runner.run(task, orders)) == [v**2 for v in range(num_orders)]
        broken_off = runner.run(task, (Act(do=tasks.square, value=-v) for v in range(99)))
        assert next(broken_off) == 0
        broken_off.close()  # type: ignore[attr-defined] # the protocol promises a generator
        assert list(runner.run(task, [Act(do=tasks.square, value=6)])) == [36]
        runner.close()
        runner.close()
        assert _journal(journal) == _both_ways(num_workers)  # opened once, closed once


def _assert_same_bytes(result: Any, expected: Any) -> None:
    """Demands equal types, and arrays equal in dtype, shape and every byte, and free to be written to."""
    assert type(result) is type(expected)
    if isinstance(expected, dict):
        assert list(result) == list(expected)
        for key in expected:
            _assert_same_bytes(result[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for part, twin in zip(result, expected, strict=True):
            _assert_same_bytes(part, twin)
    elif isinstance(expected, np.ndarray):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.tobytes() == expected.tobytes()
        assert result.flags.writeable
    else:
        assert result == expected


def _journal(path: Path) -> collections.Counter[str]:
    """Returns how often each line was written."""
    return collections.Counter(path.read_text().splitlines())


def _both_ways(num_workers: int) -> collections.Counter[str]:
    """Returns the journal in which every worker opened and closed once."""
    workers = range(num_workers) if num_workers else (None,)
    return collections.Counter(f"{way} {worker}" for way in ("open", "close") for worker in workers)
