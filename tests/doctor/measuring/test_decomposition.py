import dataclasses

import pytest

from headrace.doctor.measuring.arms import arms_of, effect_of, log_ratio
from headrace.doctor.measuring.decomposition import decompose, noise_of
from headrace.doctor.measuring.made_up import WARM, World
from headrace.doctor.measuring.waiting import find_waiting, inner_steps

SERIAL = World(wall_ms={"transform": 2}, num_workers=0, noise=0.0, step_s=0.01)
BESIDE = World(wall_ms={"decode": 5}, num_workers=2, noise=0.0, step_s=0.01, interference=0.1, transfer_s=0.001)


@pytest.mark.parametrize("world", [SERIAL, BESIDE], ids=["serial", "beside"])
def test_the_parts_of_a_step_add_up_to_it(world):
    d = decompose(world.rounds(), WARM)
    parts = [d.compute_s, d.transfer_s, d.interference_s, d.waiting_s]
    # Means of rates and of their inverses differ by the noise within a round.
    assert sum(part.value for part in parts if part is not None) == pytest.approx(d.total_s.value, rel=0.02)


def test_without_workers_the_loaders_time_is_all_waited_for():
    d = decompose(SERIAL.rounds(), WARM)
    assert d.waiting_s.value == pytest.approx(8 * 0.002, rel=0.05)
    assert d.interference_s is None
    assert d.overlap == pytest.approx(0, abs=0.1)
    assert d.headroom.value == pytest.approx(1.6, rel=0.1)
    assert d.utilisation.value == pytest.approx(1 / (1 + d.headroom.value))


def test_a_loader_that_keeps_up_overlaps_perfectly():
    d = decompose(World(wall_ms={"decode": 1}, noise=0.0).rounds(), WARM)
    assert d.overlap == pytest.approx(1, abs=0.05)
    assert d.supply_ratio.value > 2


def test_interference_and_transfer_are_what_was_put_in():
    d = decompose(BESIDE.rounds(), WARM)
    assert d.interference_s.value == pytest.approx(0.001, rel=0.2)
    assert d.transfer_s.value == pytest.approx(0.001, rel=0.3)


def test_without_a_block_of_both_nothing_is_said():
    runs = [run for run in SERIAL.rounds() if run.arm != "C"]
    assert decompose(runs, WARM) is None


def test_a_round_that_failed_takes_its_half_with_it_and_no_other():
    runs = SERIAL.rounds(num_blocks=3)
    at = next(place for place, run in enumerate(runs) if run.arm == "C")
    runs[at] = dataclasses.replace(runs[at], timed=None, failure="it crashed")
    assert log_ratio(runs, "I", "C").num_blocks == 5


def test_noise_is_what_two_entries_of_one_setting_differ_by():
    quiet = noise_of(World(wall_ms={"decode": 1}, noise=0.005).rounds(), "I")
    loud = noise_of(World(wall_ms={"decode": 1}, noise=0.2).rounds(), "I")
    assert quiet[1] < 0.05 < loud[1]


def test_intervals_of_few_differences_are_students():
    effect = effect_of([0.1, 0.2])
    assert effect.interval_95.high - effect.log == pytest.approx(12.706 * 0.05, rel=1e-3)
    assert effect_of([0.1]).interval_95.high == float("inf")


def test_every_round_is_in_its_arm():
    runs = SERIAL.rounds()
    arms = arms_of(runs, WARM)
    assert sorted(one for arm in arms for one in arm.ids) == sorted(run.id for run in runs)


def test_waits_are_those_of_the_steady_part():
    runs = BESIDE.rounds()
    waiting = find_waiting(runs)
    loops = [run.timed for run in runs if run.arm == "I"]
    waits = [timed.steps.waits_s[at] for timed in loops for at in inner_steps(timed)]
    assert waiting.longest_s == pytest.approx(max(waits))
    assert waiting.share.value == pytest.approx(0.4, abs=0.05)  # of 20 ms a batch, 12 are hidden
    assert waiting.starved_share > 0.4
    assert 0 <= waiting.tail_share <= waiting.holding_share + 1


def test_a_slow_worker_holds_the_line():
    waiting = find_waiting(World(wall_ms={"decode": 2.5}, slow_worker=6, num_workers=4).rounds())
    assert waiting.head_of_line_share > 0.5
    assert waiting.period.p <= 0.01
