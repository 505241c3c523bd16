"""The part of the runners' exam that is about failures: exceptions, dead workers, stuck workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headrace.errors import RemoteError, StuckWorker, WorkerDied
from headrace.protocols import Runner
from headrace.testing import tasks
from headrace.testing.tasks import Act, ActTask, Latch, TwoArgumentError

__all__ = ["RunnerFaults"]


class RunnerFaults:
    """Whatever goes wrong, the consumer learns what and where; see `RunnerSuite`."""

    starts_processes: ClassVar[bool] = False
    """True if workers can be killed without the consumer."""

    def make_runner(self, num_workers: int, **options: Any) -> Runner:
        """Returns the runner under test; options: `prefetch_factor`, `timeout_s`, `persistent`."""
        raise NotImplementedError("say how to make the runner")

    # ---- failures ---------------------------------------------------------------------------------------------------

    def test_an_exception_stands_in_the_place_of_its_result(self, num_workers: int) -> None:
        """Wherever it happens: earlier results come first, then the exception, then the end."""
        runner = self.make_runner(num_workers)
        for place in (0, 1, 4):
            orders = [Act(do=tasks.fail if v == place else tasks.square, value=v) for v in range(5)]
            results = runner.run(ActTask(), orders)
            assert [next(results) for _ in range(place)] == [v**2 for v in range(place)]
            with pytest.raises(ValueError, match="bad value") as caught:
                next(results)
            assert caught.value.args == ("bad value", place)
            assert caught.value.__notes__ == ["a note of the user's own"]
            assert list(results) == []  # the run is over

    def test_an_exception_shows_the_workers_traceback(self, num_workers: int) -> None:
        """The functions of the task and the cause of the exception can be read in the consumer."""
        with pytest.raises(ValueError, match="bad value") as caught:
            list(self.make_runner(num_workers).run(ActTask(), [Act(do=tasks.fail)]))
        shown = "".join(map(str, _story(caught.value)))
        assert "in fail" in shown
        assert "the cause" in shown

    def test_an_exception_keeps_its_type_whatever_its_constructor_takes(self, num_workers: int) -> None:
        """Two required arguments and a lock inside do not matter."""
        with pytest.raises(TwoArgumentError, match="awkward") as caught:
            list(self.make_runner(num_workers).run(ActTask(), [Act(do=tasks.fail_awkwardly, value=5)]))
        assert caught.value.code == 5

    def test_an_exception_keeps_what_it_holds_outside_its_arguments(self, num_workers: int) -> None:
        """The file name of an OSError arrives."""
        with pytest.raises(FileNotFoundError, match="No such file") as caught:
            list(self.make_runner(num_workers).run(ActTask(), [Act(do=tasks.fail_on_file)]))
        assert caught.value.filename == "/no/such/file"

    def test_an_exception_of_an_unknown_class_is_described(self, num_workers: int) -> None:
        """What cannot be rebuilt is at least named, with its message."""
        with pytest.raises(Exception, match="nobody knows me") as caught:
            list(self.make_runner(num_workers).run(ActTask(), [Act(do=tasks.fail_locally)]))
        assert "LocalError" in "".join(map(str, _story(caught.value)))

    def test_stop_iteration_in_a_task_does_not_pass_for_the_end(self, num_workers: int) -> None:
        """Otherwise the rest of the epoch would silently be missing."""
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(self.make_runner(num_workers).run(ActTask(), [Act(do=tasks.stop_iteration)]))

    @pytest.mark.parametrize("act", [tasks.exit_program, tasks.interrupt])
    def test_a_worker_cannot_end_the_program(self, act: Any, num_workers: int) -> None:
        """SystemExit and KeyboardInterrupt in a worker are failures of that worker."""
        if num_workers == 0:
            pytest.skip("in the caller it can")
        with pytest.raises(RemoteError, match=r"^worker \d raised builtins\.(SystemExit|KeyboardInterrupt)"):
            list(self.make_runner(num_workers).run(ActTask(), [Act(do=act)]))

    def test_failing_orders_come_after_the_results_before_them(self, num_workers: int) -> None:
        """An exception in the iterator of orders comes where a plain loop would raise it."""

        def orders() -> Iterator[Act]:
            yield Act(do=tasks.square, value=2)
            yield Act(do=tasks.square, value=3)
            raise LookupError("no more orders")

        results = self.make_runner(num_workers).run(ActTask(), orders())
        assert [next(results), next(results)] == [4, 9]
        with pytest.raises(LookupError, match=r"^no more orders$"):
            next(results)

    def test_a_task_that_does_not_open_is_reported(self, num_workers: int) -> None:
        """The exception of `task.open` reaches the consumer."""
        with pytest.raises(ValueError, match=r"^opening fails in one of"):
            list(self.make_runner(num_workers).run(ActTask(fails_in="open"), [Act(do=tasks.square)]))
        with pytest.raises(ValueError, match=r"^opening fails in one of"):
            list(self.make_runner(num_workers).run(ActTask(fails_in="open"), []))

    def test_a_task_that_does_not_close_is_reported_after_all_results(self, num_workers: int) -> None:
        """The exception of `task.close` reaches the consumer, and no result is lost for it."""
        results = self.make_runner(num_workers).run(ActTask(fails_in="close"), [Act(do=tasks.square, value=2)])
        assert next(results) == 4
        with pytest.raises(ValueError, match=r"^closing fails"):
            next(results)

    # ---- workers that do not answer ---------------------------------------------------------------------------------

    def test_a_stuck_worker_is_named_with_its_stack(self, num_workers: int, tmp_path: Path) -> None:
        """After the timeout: the sample, and the function in which the worker stands."""
        if num_workers == 0:
            pytest.skip("the caller sees where it stands")
        never = Latch(tmp_path / "never")
        runner = self.make_runner(num_workers, timeout_s=0.2)
        orders = [Act(do=tasks.square, value=2), Act(do=tasks.square, value=7, latch=never)]
        results = runner.run(ActTask(), orders)
        assert next(results) == 4
        with pytest.raises(StuckWorker, match=r"^no result from worker \d for") as caught:
            next(results)
        assert caught.value.where is not None
        assert (caught.value.where.sample_id, caught.value.where.position) == ("act-7", 1)
        assert "in wait" in str(caught.value)
        never.open()  # a thread cannot be ended: let it go

    @pytest.mark.parametrize(
        ("act", "how", "item"),
        [
            (tasks.kill_self, "was ended by SIGKILL", 2),
            (tasks.crash, "was ended by SIGSEGV", 3),
            (tasks.leave, "ended with exit status 7", 1),
        ],
    )
    def test_a_dead_worker_is_named_with_its_sample(
        self, act: Any, how: str, item: int, num_workers: int, tmp_path: Path
    ) -> None:
        """Signal or exit status, and the sample that was in hand."""
        if not self.starts_processes:
            pytest.skip("the consumer would die with it")
        latch = Latch(tmp_path / "latch")  # workers that share a process die together, with what they have in hand
        orders = [Act(do=tasks.square, value=v) for v in range(3)] + [Act(do=act, value=3, latch=latch)]
        results = self.make_runner(num_workers).run(ActTask(), orders)
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        latch.open()
        with pytest.raises(WorkerDied, match=rf"^worker \d {how}") as caught:
            next(results)
        assert caught.value.where is not None
        assert (caught.value.where.sample_id, caught.value.where.position) == ("act-3", item)

    def test_an_unsendable_result_fails_its_order_only(self, num_workers: int) -> None:
        """Earlier results arrive; the error says what cannot be pickled."""
        if not self.starts_processes:
            pytest.skip("nothing is sent")
        orders = [Act(do=tasks.square, value=2), Act(do=tasks.return_unpicklable)]
        results = self.make_runner(num_workers).run(ActTask(), orders)
        assert next(results) == 4
        with pytest.raises(TypeError, match="cannot pickle"):
            next(results)


def _story(error: BaseException | None) -> Iterator[str]:
    """Yields the text of an exception, its causes and its traceback's functions."""
    while error is not None:
        yield f"{type(error).__name__}: {error}\n"
        frame = error.__traceback__
        while frame is not None:
            yield f"in {frame.tb_frame.f_code.co_name}\n"
            frame = frame.tb_next
        error = error.__cause__
