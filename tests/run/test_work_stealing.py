"""A slow order delays its own result only: everything else that is out goes to whoever is free."""

import faulthandler
import os
import signal

import numpy as np
import pytest

from headrace.engine.run import HostRunner, ProcessRunner, ThreadRunner
from headrace.engine.run.shared_orders import Desk, SharedOrders
from headrace.engine.run.wire import Wire
from headrace.errors import StuckWorker, WorkerDied
from headrace.testing import nothing_left, tasks
from headrace.testing.tasks import Act, ActTask, Latch

RUNNERS = [
    lambda workers, **options: ThreadRunner(workers, **options),
    lambda workers, **options: ProcessRunner(workers, context="fork", **options),
    lambda workers, **options: HostRunner(workers, context="fork", **options),
]
every_runner = pytest.mark.parametrize("make_runner", RUNNERS, ids=["threads", "processes", "host"])


@pytest.fixture(autouse=True)
def _leaves_nothing():
    with nothing_left():
        yield


@every_runner
@pytest.mark.parametrize("slow_at", [0, 1, 2, 5])
def test_nothing_waits_behind_a_slow_order(make_runner, slow_at, tmp_path):
    # The slow order waits for the last one that fits beside it: only a free worker can have done that one, and all
    # between them.
    width = 2 * 4
    last = Latch(tmp_path / "last")
    orders = [Act(do=tasks.square, value=v) for v in range(slow_at)]
    orders.append(Act(do=tasks.square, value=slow_at, latch=last))
    orders += [Act(do=tasks.square, value=v) for v in range(slow_at + 1, slow_at + width - 1)]
    orders.append(Act(do=tasks.square, value=slow_at + width - 1, opens=last))
    runner = make_runner(2, prefetch_factor=4)
    assert list(runner.run(ActTask(), orders)) == [v**2 for v in range(slow_at + width)]


@every_runner
def test_pinned_and_free_orders_mix(make_runner):
    pins = [0, None, 1, None, None, 1, 1, 1, None, 0, 0, 0, None]
    orders = [Act(do=tasks.name_worker, pin=pin) for pin in pins]
    for pin, worker in zip(pins, make_runner(2).run(ActTask(), orders), strict=True):
        assert worker in ({0, 1} if pin is None else {pin})


@every_runner
def test_orders_too_long_for_the_common_place_are_done_too(make_runner):
    sizes = [1, 100_000, 3, 100_000, 100_000, 5]
    orders = [Act(do=tasks.square, value=np.arange(size)) for size in sizes]
    for size, result in zip(sizes, make_runner(2).run(ActTask(), orders), strict=True):
        assert (result == np.arange(size) ** 2).all()


@pytest.mark.parametrize("make_runner", RUNNERS[1:], ids=["processes", "host"])
def test_a_common_place_full_of_abandoned_orders_does_not_hold_up_the_next_run(make_runner, tmp_path):
    latch = Latch(tmp_path / "latch")
    heavy = np.zeros(5_000)  # 40 kB: the kernel's buffer holds a handful
    task = ActTask()
    runner = make_runner(1, prefetch_factor=30, persistent=True)
    stopped = runner.run(task, [Act(do=tasks.square, value=2)] + [Act(do=tasks.square, value=heavy, latch=latch)] * 30)
    assert next(stopped) == 4
    stopped.close()

    def orders():
        for v in range(40):
            if v == 20:
                latch.open()
            yield Act(do=tasks.square, value=v)

    assert list(runner.run(task, orders())) == [v**2 for v in range(40)]
    runner.close()


def test_a_stuck_thread_of_a_host_is_told_apart_from_a_busy_one(tmp_path):
    never = Latch(tmp_path / "never")
    orders = [Act(do=tasks.square, value=7, latch=never), Act(do=rest, value=8)]
    with pytest.raises(StuckWorker, match=r"^no result from worker \d for") as caught:
        list(HostRunner(2, context="fork", timeout_s=0.3).run(ActTask(), orders))
    assert caught.value.where.sample_id == "act-7"
    assert "in wait" in caught.value.stack
    assert "in rest" not in caught.value.stack


def test_a_crash_in_a_host_names_the_sample_of_the_thread_that_crashed(tmp_path):
    began = Latch(tmp_path / "began")
    orders = [Act(do=rest_openly, value=1, latch=None, opens=None), Act(do=tasks.crash, value=2, latch=began)]
    rest_openly.latch = began
    with pytest.raises(WorkerDied, match=r"^worker \d was ended by SIGSEGV") as caught:
        list(HostRunner(2, context="fork").run(ActTask(), orders))
    # The whole error: it holds what faulthandler wrote, without which a wrong name cannot be explained.
    assert caught.value.where.sample_id == "act-2", str(caught.value)
    assert "in crash" in str(caught.value)


def test_a_crash_is_named_although_a_library_has_put_other_handlers_in_place():
    faulthandler.enable()
    before = signal.getsignal(signal.SIGSEGV)
    try:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # as Lightning does with all signals when a training ends
        for runner in (HostRunner(2, context="fork"), ProcessRunner(2, context="fork")):
            with pytest.raises(WorkerDied, match="SIGSEGV") as caught:
                list(runner.run(ActTask(), [Act(do=tasks.crash, value=2)]))
            assert "in crash" in str(caught.value)
    finally:
        signal.signal(signal.SIGSEGV, before)
        faulthandler.disable()
        faulthandler.enable()


def test_a_killed_host_names_a_sample_that_was_in_hand():
    with pytest.raises(WorkerDied, match=r"^worker \d was ended by SIGKILL") as caught:
        list(HostRunner(3, context="fork").run(ActTask(), [Act(do=tasks.kill_self, value=4)]))
    assert caught.value.where.sample_id == "act-4"


def test_a_worker_killed_while_others_go_on_ends_the_run():
    orders = [Act(do=kill_once, value=v) for v in range(50)]
    with pytest.raises(WorkerDied, match="SIGKILL") as caught:
        list(ProcessRunner(3, context="fork").run(ActTask(), orders))
    assert caught.value.where.sample_id == "act-17"


def test_the_common_place_refuses_what_does_not_fit_and_gives_back_what_does():
    shared = SharedOrders()
    assert not shared.offer([bytes(70_000)])
    message = [b"head", memoryview(np.arange(3)).cast("B"), b""]
    num_laid = 0
    while num_laid < 10_000 and shared.offer(message):
        num_laid += 1
    assert 2 <= num_laid < 10_000
    own, other = __import__("socket").socketpair()
    desk = Desk(own.fileno(), shared.workers_end)
    for _ in range(num_laid):
        assert [bytes(part) for part in desk.wait()] == [bytes(part) for part in message]
    Wire(other).send([b"x"])
    assert desk.wait() is None
    desk.close()
    shared.close()
    shared.close()
    assert not shared.offer([b"x"])
    own.close()
    other.close()


def rest(task, act, mark):
    __import__("time").sleep(30)


def rest_openly(task, act, mark):
    mark(0)
    rest_openly.latch.open()
    rest(task, act, mark)


def kill_once(task, act, mark):
    if act.value == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    return act.value
