"""Whatever the governor decides, results are those of the plain loop."""

import itertools
import os
import random

import numpy as np
import pytest

import headrace as hr
from headrace.engine.governor import AutoRunner, Governor, Limits, Setting
from headrace.engine.governor.feed import Feed
from headrace.engine.run import HostRunner, ProcessRunner, ThreadRunner
from headrace.errors import ConfigurationError
from headrace.observe import Decision
from headrace.testing import RunnerSuite, nothing_left, tasks
from headrace.testing.tasks import Act, ActTask

KINDS = {
    "threads": ThreadRunner,
    "host": lambda *args, **options: HostRunner(*args, context="fork", **options),
    "processes": lambda *args, **options: ProcessRunner(*args, context="fork", **options),
}


def make(setting):
    return KINDS[setting.runner](setting.num_workers, prefetch_factor=setting.prefetch_factor)


class Restless(Governor):
    """Changes its mind after every round, through a list of settings."""

    def __init__(self, settings):
        super().__init__(Limits(num_cores=2, memory_bytes=2**40, runners=("processes",)))
        self._settings = itertools.cycle(settings)

    def observe(self, seen, time_s):
        before, self.setting = self.setting, next(self._settings)
        return Decision(time_s=time_s, before=str(before), after=str(self.setting), reason="restless")


@pytest.fixture(autouse=True)
def _leaves_nothing():
    with nothing_left():
        yield


@pytest.fixture
def short_rounds(monkeypatch):
    monkeypatch.setattr("headrace.engine.governor.meter._ENOUGH", ((2, 0.0),))
    monkeypatch.setattr("headrace.engine.governor.meter._SHORTEST_S", 0.0)


class TestAutoInTheCaller(RunnerSuite):
    worker_counts = (0,)

    def make_runner(self, num_workers, **options):
        return AutoRunner(make)


SETTINGS = [
    Setting("threads", 2),
    Setting("host", 2),
    Setting("inline", 0),
    Setting("processes", 1, 1),
    Setting("host", 3, 1),
    Setting("processes", 2),
]


@pytest.mark.usefixtures("short_rounds")
def test_results_are_those_of_the_plain_loop_however_often_the_setting_changes():
    runner = AutoRunner(make, governor=Restless(SETTINGS))
    orders = (Act(do=tasks.make_arrays, value=v) for v in range(90))
    expected = [tasks.make_arrays(None, Act(do=tasks.make_arrays, value=v), lambda _: None) for v in range(90)]
    num = 0
    for result, twin in zip(runner.run(ActTask(), orders), expected, strict=True):
        assert repr(result) == repr(twin)
        num += 1
    assert num == 90
    assert len({decision.after for decision in runner.decisions}) == len(SETTINGS)


@pytest.mark.usefixtures("short_rounds")
def test_a_failing_order_and_a_break_are_as_ever_under_changes():
    runner = AutoRunner(make, governor=Restless(SETTINGS))
    orders = [Act(do=tasks.fail if v == 47 else tasks.square, value=v) for v in range(60)]
    results = runner.run(ActTask(), orders)
    assert [next(results) for _ in range(47)] == [v**2 for v in range(47)]
    with pytest.raises(ValueError, match="bad value"):
        next(results)
    broken_off = runner.run(ActTask(), orders)
    assert next(broken_off) == 0
    broken_off.close()


class SharedActTask(ActTask):
    """Says that it may run in threads, so that before leaving the caller two orders are tried there."""

    def for_threads(self):
        return self


@pytest.mark.usefixtures("short_rounds")
def test_orders_that_were_tried_keep_their_place_when_the_caller_goes_on(monkeypatch):
    monkeypatch.setattr("headrace.engine.governor.auto.SLEEPY_SHARE", 0.0)  # whatever the clocks say, it computes
    runner = AutoRunner(make)
    runner._governor.is_settled = True  # at rest in the caller, as after rounds in which the loop did not wait
    runner._governor.limits = Limits(num_cores=2, memory_bytes=2**40, runners=("processes",))
    orders = [Act(do=tasks.square, value=v) for v in range(5000)]
    assert list(runner.run(SharedActTask(), orders)) == [v**2 for v in range(5000)]
    assert runner._has_learned  # else nothing was tried


@pytest.mark.usefixtures("short_rounds")
def test_workers_that_cannot_start_leave_the_work_to_the_caller():
    def refuse(setting):
        raise ConfigurationError("no processes here")

    runner = AutoRunner(refuse, governor=Restless([Setting("processes", 2)]))
    assert list(runner.run(ActTask(), [Act(do=tasks.square, value=v) for v in range(9)])) == [v**2 for v in range(9)]
    assert runner.setting == Setting("inline", 0)
    assert runner.decisions[-1].reason == "processes: no processes here"


def test_orders_in_turn_keep_their_sequence_whatever_is_looked_at():
    feed = Feed(range(9))
    turn = feed.in_turn()
    assert [next(turn), next(turn)] == [0, 1]
    assert feed.peek(2) == [2, 3]
    assert [next(turn), next(turn)] == [2, 3]
    turn.close()
    assert not feed.is_done
    assert list(feed.in_turn()) == [4, 5, 6, 7, 8]
    assert feed.is_done


def test_lost_orders_are_given_out_again_in_their_sequence():
    feed = Feed(range(9))
    assert feed.peek(2) == [0, 1]
    first = feed.stretch()
    assert [next(first) for _ in range(4)] == [0, 1, 2, 3]
    feed.answered()
    feed.end_stretch()
    assert next(first, None) is None
    feed.rewind()
    assert list(feed.stretch()) == [1, 2, 3, 4, 5, 6, 7, 8]
    for _ in range(8):
        assert not feed.is_done
        feed.answered()
    assert feed.is_done


# ---- the loader -----------------------------------------------------------------------------------------------------


class Sleepy:
    def __len__(self):
        return 2_000

    def __getitem__(self, index):
        __import__("time").sleep(0.002)
        return np.full(3, index)


class Sneaky(Sleepy):
    """Draws from a global generator, but so late that no trial in the caller can have seen it."""

    def __getitem__(self, index):
        __import__("time").sleep(0.002)
        return np.array([index, random.random() if index > 1_000 else 0.0])


def crop(sample, rng):
    return sample + rng.integers(0, 9)


def stream(loader):
    return [(loader.last.sample_ids, batch.numpy().tobytes()) for batch in loader]


def loader_of(data, **options):
    return hr.DataLoader(data, batch_size=4, seed=3, multiprocessing_context="fork", **options)


@pytest.mark.slow
def test_sleepy_data_get_many_threads_and_the_same_bytes():
    plan = hr.Plan.of(Sleepy()).map(crop)
    loader = loader_of(plan, num_workers="auto", shuffle=True)
    assert stream(loader) == stream(loader_of(plan, num_workers=2, shuffle=True))
    assert loader.stats().runner == "auto"
    # How many depends on what else the machine does; more than it has cores only helps data that sleep.
    assert loader.stats().num_workers > min(4, len(os.sched_getaffinity(0)))
    assert loader.stats().decisions[0].after.startswith("host x ")


@pytest.mark.slow
def test_code_that_is_caught_drawing_in_a_host_moves_to_processes_before_anything_is_delivered():
    loader = loader_of(Sneaky(), num_workers="auto")
    assert stream(loader) == stream(loader_of(Sneaky(), num_workers=2))
    assert any("draws from random" in decision.reason for decision in loader.stats().decisions)


def test_what_auto_chooses_cannot_be_given_as_well():
    with pytest.raises(ConfigurationError, match=r"^num_workers='auto' excludes runner, prefetch_factor"):
        loader_of(Sleepy(), num_workers="auto", runner="threads", prefetch_factor=3)
    with pytest.raises(ConfigurationError, match=r"^memory_limit bounds the memory that worker processes share"):
        loader_of(Sleepy(), memory_limit=2**20)
    with pytest.raises(ConfigurationError, match=r"^num_workers='auto' cannot be chosen for an iterable"):
        loader_of(iter([1]), num_workers="auto")


def test_host_refuses_code_that_draws_from_global_generators():
    class Drawing(Sleepy):
        def __getitem__(self, index):
            return random.random()

    with pytest.raises(hr.errors.GlobalRandomness, match="runner='host'"):
        iter(loader_of(Drawing(), num_workers=2, runner="host"))
