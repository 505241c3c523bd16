"""The governor finds a setting under which the loop does not wait, or the best there is; settles; respects limits."""

import dataclasses
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.governor import Governor, Limits, Observation, Setting


@dataclasses.dataclass
class Workload:
    """A simulated loop: what a round under a setting looks like."""

    service_s: float
    step_s: float
    cpu_share: float = 1.0
    num_cores: int = 4
    holds_lock: bool = False
    overhead_s: float = 0.0003
    noise: float = 0.0
    burst: float = 1.0
    """How many steps' time may pass at once: a store of so many batches is needed to bridge it."""
    batch_bytes: int = 1_000
    luck: random.Random = dataclasses.field(default_factory=lambda: random.Random(0))

    def supply(self, setting):
        """Batches per second that the workers can make."""
        at_once = min(setting.num_workers, self.num_cores / self.cpu_share)
        if self.holds_lock and setting.runner != "processes":
            at_once = min(at_once, 1 / self.cpu_share)
        return at_once / (self.service_s + self.overhead_s)

    def round(self, setting):
        num = 100
        shake = 1 + self.noise * self.luck.uniform(-1, 1)
        if setting.num_workers == 0:
            wait_s = num * self.service_s * shake
        else:
            per_batch_s = max(1 / self.supply(setting) - self.step_s, 0.0)
            if setting.max_in_flight < self.burst:
                per_batch_s = max(per_batch_s, 0.2 * self.step_s)
            wait_s = num * per_batch_s * shake
        return Observation(
            num_batches=num,
            wall_s=num * self.step_s + wait_s,
            wait_s=wait_s,
            service_s=self.service_s,
            cpu_share=self.cpu_share,
            batch_bytes=self.batch_bytes,
        )


def play(workload, *, rounds=40, memory_bytes=2**40, runners=("processes",)):
    governor = Governor(Limits(num_cores=workload.num_cores, memory_bytes=memory_bytes, runners=runners))
    decisions = []
    for time_s in range(rounds):
        decision = governor.observe(workload.round(governor.setting), float(time_s))
        if decision is not None:
            decisions.append(decision)
    return governor, decisions


def wait_share(workload, setting):
    return dataclasses.replace(workload, noise=0.0).round(setting).wait_share


def test_a_fast_data_set_stays_in_the_caller():
    governor, decisions = play(Workload(service_s=0.0001, step_s=0.05))
    assert governor.setting == Setting("inline", 0)
    assert governor.is_settled
    assert len(decisions) == 1
    assert "hardly waits" in decisions[0].reason


def test_work_that_computes_gets_as_few_workers_as_keep_pace():
    governor, _ = play(Workload(service_s=0.025, step_s=0.01))
    assert (governor.setting.runner, governor.setting.num_workers) == ("processes", 3)
    assert governor.is_settled


def test_work_that_computes_never_gets_more_workers_than_cores():
    governor, decisions = play(Workload(service_s=0.1, step_s=0.0001, num_cores=2))
    assert governor.setting.num_workers == 2
    assert governor.is_settled
    assert "the most that cores and memory allow" in decisions[-1].reason


@pytest.mark.parametrize(("step_s", "fewest"), [(0.0, 256), (0.001, 20), (0.01, 2)])
def test_work_that_sleeps_gets_more_workers_than_cores(step_s, fewest):
    workload = Workload(service_s=0.02, step_s=step_s, cpu_share=0.001, num_cores=2, overhead_s=0.0)
    governor, _ = play(workload, runners=("host", "processes"))
    assert governor.setting.runner == "host"
    assert fewest <= governor.setting.num_workers <= max(1.3 * fewest, fewest + 1)


def test_workers_that_bring_nothing_are_sent_home():
    # Handing over costs more than loading: two workers deliver no more than the caller itself.
    governor, decisions = play(Workload(service_s=0.0001, step_s=0.0, overhead_s=0.001, num_cores=2))
    assert governor.setting == Setting("inline", 0)
    assert "no more than inline" in decisions[-1].reason


@pytest.mark.parametrize(("factor", "kept"), [(1.3, "processes"), (1.02, "host")])
def test_where_no_more_workers_can_be_had_the_other_runner_is_tried(factor, kept):
    class Crowded(Workload):
        def supply(self, setting):
            return super().supply(setting) * (factor if setting.runner == "processes" else 1.0)

    governor, decisions = play(Crowded(service_s=0.02, step_s=0.0001, num_cores=2), runners=("host", "processes"))
    assert (governor.setting.runner, governor.setting.num_workers) == (kept, 2)
    assert governor.is_settled
    assert any("trying processes" in decision.reason for decision in decisions)


def test_threads_that_share_a_lock_are_sent_home():
    governor, _ = play(Workload(service_s=0.01, step_s=0.0001, holds_lock=True), runners=("host",))
    assert governor.setting == Setting("inline", 0)


def test_a_bursty_consumer_gets_a_deeper_store_and_not_more_workers():
    governor, decisions = play(Workload(service_s=0.006, step_s=0.01, burst=6))
    assert governor.setting.num_workers == 1
    assert governor.setting.max_in_flight >= 6
    assert any("ready beforehand" in decision.reason for decision in decisions)


def test_memory_bounds_what_exists_at_once():
    workload = Workload(service_s=0.02, step_s=0.0, cpu_share=0.001, batch_bytes=10)
    governor, _ = play(workload, memory_bytes=165)
    assert governor.setting.max_in_flight * 10 <= 165
    assert governor.setting.num_workers == 15


def test_a_refused_runner_is_not_tried_again():
    governor = Governor(Limits(num_cores=2, memory_bytes=2**40, runners=("host", "processes")))
    governor.observe(Workload(service_s=0.02, step_s=0.0, cpu_share=0.001).round(governor.setting), 0.0)
    assert governor.setting.runner == "host"
    decision = governor.refuse("host", "the data draws from random", 1.0)
    assert governor.setting.runner == "processes"
    assert governor.setting.num_workers == 2
    assert decision.reason == "host: the data draws from random"
    governor.refuse("processes", "cannot be started here", 2.0)
    assert (governor.setting, governor.is_settled) == (Setting("inline", 0), True)


def test_without_workers_to_choose_from_the_caller_does_it():
    governor, _ = play(Workload(service_s=1.0, step_s=0.0), runners=())
    assert (governor.setting, governor.is_settled) == (Setting("inline", 0), True)


def test_a_settled_governor_looks_again_when_the_work_becomes_heavier():
    workload = Workload(service_s=0.0001, step_s=0.01)
    governor, _ = play(workload)
    assert governor.setting.num_workers == 0
    for time_s in range(20):
        governor.observe(dataclasses.replace(workload, service_s=0.015).round(governor.setting), 100.0 + time_s)
    assert governor.is_settled
    assert governor.setting.num_workers == 2


def test_one_slow_round_does_not_move_a_settled_governor():
    workload = Workload(service_s=0.0001, step_s=0.01)
    governor, _ = play(workload)
    slow = dataclasses.replace(workload, service_s=0.02)
    for time_s, load in enumerate([slow, workload, slow, slow, workload] * 4):
        assert governor.observe(load.round(governor.setting), float(time_s)) is None


@given(
    service_s=st.floats(1e-5, 1.0),
    step_s=st.floats(0.0, 0.3),
    cpu_share=st.floats(0.001, 1.0),
    num_cores=st.integers(1, 64),
    holds_lock=st.booleans(),
    noise=st.floats(0.0, 0.3),
    batch_bytes=st.integers(0, 10**8),
    memory_bytes=st.integers(0, 10**10),
    runners=st.permutations(["host", "processes"]),
    seed=st.integers(0, 9),
)
def test_it_settles_soon_stays_within_its_limits_and_is_never_worse_than_the_caller(
    service_s, step_s, cpu_share, num_cores, holds_lock, noise, batch_bytes, memory_bytes, runners, seed
):
    workload = Workload(
        service_s=service_s,
        step_s=step_s,
        cpu_share=cpu_share,
        num_cores=num_cores,
        holds_lock=holds_lock,
        noise=noise,
        batch_bytes=batch_bytes,
        luck=random.Random(seed),
    )
    limits = Limits(num_cores=num_cores, memory_bytes=memory_bytes, runners=tuple(runners))
    governor = Governor(limits)
    settings = [governor.setting]
    for time_s in range(25):
        governor.observe(workload.round(governor.setting), float(time_s))
        settings.append(governor.setting)
        most = num_cores if cpu_share >= 0.5 else max(num_cores, 256)
        assert governor.setting.num_workers <= most
        if governor.setting.num_workers > 1:
            assert governor.setting.max_in_flight * batch_bytes <= memory_bytes
    assert governor.is_settled
    changes = sum(a != b for a, b in itertools.pairwise(settings))
    assert changes <= 12
    if noise == 0.0:
        assert wait_share(workload, governor.setting) <= wait_share(workload, Setting("inline", 0)) + 1e-9
