"""What only processes can get wrong: start methods, tasks that do not pickle, resources of the pool."""

import collections
import gc
import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time

import numpy as np
import psutil
import pytest

from headrace.engine.run import InlineRunner, PipeTransport, ProcessRunner, ThreadRunner, drive, lifetime
from headrace.engine.run.deaths import death_error
from headrace.engine.run.pool import Pool
from headrace.errors import ConfigurationError, StuckWorker, Where, WorkerDied
from headrace.testing import nothing_left, tasks
from headrace.testing.tasks import Act, ActTask, Latch

SQUARES = [Act(do=tasks.square, value=v) for v in range(5)]


@pytest.fixture(autouse=True)
def _leaves_nothing():
    with nothing_left():
        yield


# ---- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": 0}, r"^num_workers must be an integer of at least 1, not 0"),
        ({"num_workers": 2.0}, r"^num_workers must be an integer of at least 1, not 2\.0"),
        ({"num_workers": 1, "prefetch_factor": 0}, r"^prefetch_factor must be"),
        ({"num_workers": 1, "timeout_s": -1}, r"^timeout must be at least 0 seconds"),
        ({"num_workers": 1, "context": "forks"}, r"^processes start by .*, not by 'forks'; did you mean 'fork'\?"),
    ],
)
def test_impossible_numbers_are_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        ProcessRunner(**options)


def test_the_programs_start_method_is_respected_and_not_fixed():
    default = multiprocessing.get_start_method(allow_none=True)
    assert ProcessRunner(1, context=multiprocessing.get_context("spawn")).start_method == "spawn"
    assert ProcessRunner(1).start_method in multiprocessing.get_all_start_methods()
    assert multiprocessing.get_start_method(allow_none=True) == default


# ---- the task on its way --------------------------------------------------------------------------------------------


class Luggage:
    def __init__(self, inside):
        self.inside = inside


@pytest.mark.parametrize(
    ("luggage", "path"),
    [
        ({"transform": [len, lambda x: x]}, r"task\.luggage\['transform'\]\[1\] \(function .*<lambda>, .*\.py:\d+\)"),
        (Luggage(threading.Lock()), r"task\.luggage\.inside \(a _thread\.lock\)"),
    ],
)
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_an_unpicklable_part_is_named_before_any_worker_starts(luggage, path, context):
    # Luggage is found by pickle under this module's own name only if that can be imported, which is not the point.
    Luggage.__reduce__ = lambda self: (collections.OrderedDict, ([("inside", self.inside)],))
    children = psutil.Process().children
    with pytest.raises(ConfigurationError, match=rf"^{path} cannot be pickled") as caught:
        list(ProcessRunner(1, context=context).run(ActTask(luggage=luggage), SQUARES))
    assert any("fork" in fix for fix in caught.value.do)
    assert not [child for child in children() if child.name().startswith("headrace")]


def test_fork_needs_no_pickle():
    assert list(ProcessRunner(1, context="fork").run(ActTask(luggage=lambda: 1), SQUARES)) == [0, 1, 4, 9, 16]


# ---- results --------------------------------------------------------------------------------------------------------


class CountingTransport(PipeTransport):
    """A transport with resources: counts what is open."""

    def __init__(self):
        self.log = []

    def open(self, num_workers, max_in_flight):
        self.log.append(("open", num_workers, max_in_flight))
        channel = super().open(num_workers, max_in_flight)
        channel.close = lambda: self.log.append(("close",))
        return channel


def test_a_channel_is_opened_and_closed_once_for_each_pool():
    transport = CountingTransport()
    runner = ProcessRunner(2, context="fork", transport=transport)
    assert list(runner.run(ActTask(), SQUARES)) == [0, 1, 4, 9, 16]
    with pytest.raises(WorkerDied):
        list(runner.run(ActTask(), [Act(do=tasks.kill_self)]))
    assert transport.log == [("open", 2, runner.max_in_flight), ("close",)] * 2


def test_orders_of_megabytes_pass():
    orders = [Act(do=tasks.square, value=np.full(1_000_000, v)) for v in range(5)]
    for v, result in enumerate(ProcessRunner(1, context="fork").run(ActTask(), orders)):
        assert (result == v**2).all()


def test_an_order_that_does_not_pickle_is_reported():
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        list(ProcessRunner(1, context="fork").run(ActTask(), [Act(do=lambda *_: 1)]))


def test_a_stuck_worker_is_found_even_while_it_is_being_sent_to(tmp_path):
    never = Latch(tmp_path / "never")
    orders = [Act(do=tasks.square, latch=never), Act(do=tasks.square, value=np.zeros(1_000_000))]
    with pytest.raises(StuckWorker, match=r"^no result from worker 0 for"):
        list(ProcessRunner(1, context="fork", timeout_s=0.2).run(ActTask(), orders))


# ---- silence --------------------------------------------------------------------------------------------------------


def begin_and_stand(task, act, mark):
    """Says that it has begun, then stands until it may go on."""
    mark(0)
    began, go_on = act.value
    began.open()
    go_on.wait()
    return 9


@pytest.mark.parametrize("runner", [ThreadRunner(2), ProcessRunner(2, context="fork")], ids=repr)
def test_without_a_timeout_long_silence_is_logged_once_with_stacks(runner, tmp_path, monkeypatch, caplog):
    began, go_on = Latch(tmp_path / "began"), Latch(tmp_path / "go on")

    class OpensLatch(logging.Handler):
        def emit(self, record):
            go_on.open()

    def shorten_silence():
        began.wait()  # only now, so that the stacks show the sample and not a worker that is still starting
        monkeypatch.setattr(drive, "SILENCE_S", 0.01)

    handler = OpensLatch()
    logging.getLogger("headrace").addHandler(handler)
    patience = threading.Thread(target=shorten_silence)
    patience.start()
    with caplog.at_level(logging.WARNING, "headrace"):
        assert list(runner.run(ActTask(), [Act(do=begin_and_stand, value=(began, go_on))])) == [9]
    patience.join()
    logging.getLogger("headrace").removeHandler(handler)
    (record,) = caplog.records
    assert "sample act-" in record.getMessage()
    assert "begin_and_stand" in record.getMessage()


# ---- death ----------------------------------------------------------------------------------------------------------


def test_a_worker_killed_while_idle_is_replaced_at_the_next_run():
    runner = ProcessRunner(1, context="fork", persistent=True)
    task = ActTask()
    (pid,) = runner.run(task, [Act(do=tasks.name_process)])
    os.kill(pid, signal.SIGKILL)
    while any(child.pid == pid for child in multiprocessing.active_children()):
        time.sleep(0.002)
    assert list(runner.run(task, SQUARES)) == [0, 1, 4, 9, 16]
    runner.close()


def test_the_death_of_one_worker_waits_for_the_results_before_it(tmp_path, monkeypatch):
    latch = Latch(tmp_path / "latch")
    num_checks = 0

    def check(pool):
        nonlocal num_checks
        num_checks += 1
        if num_checks == 3:  # by now the death was reported by the pipe, and by two checks
            latch.open()
        original(pool)

    original = Pool.check
    monkeypatch.setattr(Pool, "check", check)
    monkeypatch.setattr(drive, "_TICK_S", 0.05)
    orders = [Act(do=tasks.square, value=3, latch=latch, pin=0), Act(do=tasks.kill_self, pin=1)]
    results = ProcessRunner(2, context="fork").run(ActTask(), orders)
    assert next(results) == 9
    with pytest.raises(WorkerDied, match=r"^worker 1 was ended by SIGKILL"):
        next(results)


def test_a_failing_order_of_an_abandoned_run_does_not_shorten_the_next(tmp_path):
    latch = Latch(tmp_path / "latch")
    runner = ProcessRunner(1, context="fork", persistent=True)
    task = ActTask()
    broken_off = runner.run(task, [Act(do=tasks.square, value=3), Act(do=tasks.fail, latch=latch)])
    assert next(broken_off) == 9
    broken_off.close()

    def orders():
        latch.open()
        for value in range(20):
            yield Act(do=tasks.square, value=value)

    assert list(runner.run(task, orders())) == [value**2 for value in range(20)]
    runner.close()


@pytest.mark.parametrize(
    "runner", [InlineRunner(), ThreadRunner(1), ProcessRunner(1, context="fork")], ids=lambda one: type(one).__name__
)
def test_a_task_that_does_not_close_is_reported_to_whoever_breaks_off(runner, monkeypatch):
    monkeypatch.setattr(lifetime, "HASTY_GRACE_S", 60.0)
    results = runner.run(ActTask(fails_in="close"), SQUARES)
    assert next(results) == 0
    with pytest.raises(ValueError, match=r"^closing fails"):
        results.close()


def test_another_task_gets_other_workers():
    runner = ProcessRunner(1, context="fork", persistent=True)
    pid = Act(do=tasks.name_process)
    task = ActTask()
    (first,) = runner.run(task, [pid])
    (again,) = runner.run(task, [pid])
    (other,) = runner.run(ActTask(), [pid])
    assert first == again != other
    del runner, task  # forgetting the runner ends its idle workers
    gc.collect()


def test_two_live_runs_of_a_persistent_runner_keep_one_pool():
    runner = ProcessRunner(1, context="fork", persistent=True)
    task = ActTask()
    one, two = runner.run(task, SQUARES), runner.run(task, SQUARES)
    assert list(zip(one, two, strict=True)) == [(v, v) for v in (0, 1, 4, 9, 16)]
    runner.close()


def test_a_worker_is_no_place_for_workers():
    def nested(task, act, mark):
        return list(ProcessRunner(1, context="fork").run(ActTask(), SQUARES))

    globals()["nested"], nested.__qualname__ = nested, "nested"
    with pytest.raises(ConfigurationError, match=r"^worker processes cannot be started from inside a worker process"):
        list(ProcessRunner(1, context="fork").run(ActTask(), [Act(do=nested)]))


def test_a_handler_for_sigterm_does_not_reach_the_workers():
    called = []
    before = signal.signal(signal.SIGTERM, lambda *_: called.append(1))
    try:
        with pytest.raises(WorkerDied, match=r"^worker 0 was ended by SIGTERM"):
            list(ProcessRunner(1, context="fork").run(ActTask(), [Act(do=terminate_self)]))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not called


def terminate_self(task, act, mark):
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_forked_child_of_the_consumer_harms_no_worker():
    results = ProcessRunner(2, context="fork").run(ActTask(), SQUARES)
    assert next(results) == 0
    pid = os.fork()
    if pid == 0:
        results.close()  # as when the copy of the iterator is collected in there
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert list(results) == [1, 4, 9, 16]


@pytest.mark.parametrize(
    ("exitcode", "first_line", "word"),
    [
        (-signal.SIGKILL, "worker 1 was ended by SIGKILL", "out-of-memory"),
        (-signal.SIGBUS, "worker 1 was ended by SIGBUS", "/dev/shm"),
        (-signal.SIGSEGV, "worker 1 was ended by SIGSEGV", "native code"),
        (-signal.SIGABRT, "worker 1 was ended by SIGABRT", "native code"),
        (-signal.SIGTERM, "worker 1 was ended by SIGTERM", "outside"),
        (-62, "worker 1 was ended by signal 62", "native code"),
        (0, "worker 1 ended with exit status 0", "os._exit"),
        (7, "worker 1 ended with exit status 7", "os._exit"),
        (None, "worker 1 ended", "not known"),
    ],
)
def test_every_death_has_its_words(exitcode, first_line, word):
    error = death_error(1, exitcode, Where(sample_id="a.png", worker=1), has_started=True, stack="File x")
    text = str(error)
    assert text.splitlines()[0] == first_line
    assert word in text
    assert "sample a.png" in text
    assert "replay" in error.do[0]
    assert error.exitcode == exitcode
