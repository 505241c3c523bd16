"""What the governor's measurements say."""

import threading
import time

import numpy as np
import pytest

from headrace.engine.governor import Setting
from headrace.engine.governor.lock_probe import speedup_by_threads
from headrace.engine.governor.meter import Meter
from headrace.engine.governor.sizes import batch_bytes
from headrace.engine.governor.watched import WatchedTask
from headrace.errors import GlobalRandomness
from headrace.machine import thread_awake_s, usable_cores, usable_memory
from headrace.observe import StageTime
from headrace.testing import tasks
from headrace.testing.tasks import Act, ActTask


def test_work_that_waits_outside_the_lock_is_twice_as_fast_in_two_threads():
    orders = [Act(do=doze), Act(do=doze)]
    assert speedup_by_threads(opened(), orders) > 1.5


def test_work_that_holds_a_lock_is_not():
    orders = [Act(do=doze_alone), Act(do=doze_alone)]
    assert speedup_by_threads(opened(), orders) < 1.3


def test_a_failing_order_gives_no_answer():
    assert speedup_by_threads(opened(), [Act(do=tasks.fail), Act(do=tasks.square)]) is None


def test_the_probe_keeps_to_its_budget():
    seconds = iter(range(1000))
    num_asked = 0

    def clock():
        nonlocal num_asked
        num_asked += 1
        return float(next(seconds))

    assert speedup_by_threads(opened(), [Act(do=tasks.square)] * 2, budget_s=1.0, clock=clock) == 1.0
    assert num_asked == 6  # the deadline, one round, a look


def test_a_batch_weighs_what_its_arrays_weigh():
    image = np.zeros((2, 3), np.float32)
    assert batch_bytes(image) == 24
    assert batch_bytes({"a": image, "b": [image, (image,)]}) == 72
    assert 0 < batch_bytes("text") < 100
    assert batch_bytes(None) > 0


class Delivery:
    batch = np.zeros(10, np.uint8)
    stage_times = (StageTime("read", 0.25, 4), StageTime("crop", 0.5, 4))


def test_a_round_leaves_out_what_was_cold_and_counts_waits():
    now = 0.0

    def clock():
        return now

    def results():
        nonlocal now
        for num in range(40):
            now += 100.0 if num < 5 else 0.5
            yield Delivery()

    meter = Meter(Setting("host", 2, 2), clock)
    seen = None
    for _ in meter.measure(results()):
        now += 1.5  # the consumer's step
        seen = meter.round()
        if seen is not None:
            break
    assert (seen.num_batches, seen.batch_bytes) == (4, 10)
    assert (seen.wait_s, seen.wall_s) == (pytest.approx(2.0), pytest.approx(8.0))
    assert seen.service_s == pytest.approx(0.75)
    assert seen.cpu_share is None


def test_stretches_shorter_than_what_is_left_out_are_judged_in_the_end():
    meter = Meter(Setting("host", 8, 2), iter(range(10**6)).__next__)  # 17 in flight
    for num_stretches in range(1, 12):
        rounds = [meter.round() for _ in meter.measure(iter([Delivery()] * 10))]
        if any(rounds):
            break
    assert num_stretches > 1
    assert any(rounds)


def test_a_thread_that_computes_is_awake_and_one_that_sleeps_is_not():
    before_s, began_s = thread_awake_s(), time.monotonic()
    time.sleep(0.2)
    assert thread_awake_s() - before_s < 0.5 * (time.monotonic() - began_s)
    before_s = thread_awake_s()
    while thread_awake_s() - before_s < 0.05:  # ends: it counts
        pass


def test_whoever_draws_in_a_shared_process_is_refused():
    watched = WatchedTask(ActTask())
    watched.open(0, 1)
    assert watched.run(Act(do=tasks.square, value=3), lambda _: None) == 9
    with pytest.raises(GlobalRandomness, match=r"^this data draws from numpy\.random") as caught:
        watched.run(Act(do=lambda *_: np.random.rand(), value=5), lambda _: None)
    assert caught.value.where.sample_id == "act-5"
    watched.close()


def test_cores_and_memory_keep_to_the_containers_limits(tmp_path):
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert usable_cores(tmp_path) == 1
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert usable_memory(tmp_path) == 600_000
    (tmp_path / "memory.max").write_text("max\n")
    assert usable_memory(tmp_path) > 600_000
    old = tmp_path / "old"
    (old / "memory").mkdir(parents=True)
    (old / "memory" / "memory.limit_in_bytes").write_text("5000\n")
    (old / "memory" / "memory.usage_in_bytes").write_text("9000\n")
    assert usable_memory(old) == 0


def opened():
    return ActTask()


_LOCK = threading.Lock()


def doze(task, act, mark):
    time.sleep(0.02)


def doze_alone(task, act, mark):
    with _LOCK:
        time.sleep(0.02)
