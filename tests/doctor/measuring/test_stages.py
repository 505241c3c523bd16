import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.measuring.made_up import World
from headrace.doctor.measuring.model import Estimate, KnockOut
from headrace.doctor.measuring.resources import resources_for
from headrace.doctor.measuring.stages import ceiling_of, explained, find_stages, predicted_gains, saved
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.timed import StageUse


def use(stage, wall_ms, cpu_ms=None, **more):
    return StageUse(
        stage=stage,
        wall_s=wall_ms / 10,
        cpu_s=(wall_ms if cpu_ms is None else cpu_ms) / 10,
        num_samples=100,
        num_servers=2,
        **more,
    )


def out(stage, gain, low=None):
    low = gain / 2 if low is None else low
    return KnockOut(stage=stage, gain=Estimate(value=gain, interval=Interval(low, 2 * gain)), predicted=None, ids=())


def test_stages_of_a_worker_follow_each_other_and_workers_do_not():
    uses = [use("read", 2), use("decode", 8)]
    assert ceiling_of(uses, num_workers=4, cores=100).rate_per_s == pytest.approx(4 / 0.010)
    assert predicted_gains(uses, num_workers=4, cores=100) == pytest.approx(
        {"read": 0.25, "decode": 4.0, "sample": math.inf}
    )


def test_handing_over_is_a_server_of_its_own_beside_workers():
    uses = [use("sample", 4), use("handover", 1)]
    assert ceiling_of(uses, num_workers=8, cores=100).rate_per_s == pytest.approx(1000)
    assert predicted_gains(uses, num_workers=8, cores=100)["sample"] == pytest.approx(0)


def test_cores_bind_where_workers_compute_more_than_there_are():
    assert ceiling_of([use("decode", 10)], num_workers=8, cores=2).rate_per_s == pytest.approx(200)


def test_a_stage_is_named_if_model_and_experiment_agree():
    predicted = {"read": 0.25, "decode": 4.0}
    assert explained([out("read", 0.2), out("decode", 3.5)], predicted)[0] == ("decode", "experiment")


def test_if_they_do_not_agree_nothing_is_named():
    assert explained([out("read", 3.0), out("decode", 0.1)], {"read": 0.1, "decode": 3.0}) == []


@pytest.mark.parametrize(
    ("tried", "predicted"),
    [
        ([("decode", 2.0, -0.5)], {"decode": 0.2}),  # the model says that it takes little
        ([("decode", 2.0, -0.5)], {"decode": 400.0}),  # more than the rounds admit
        ([("decode", 2.0, -0.5), ("read", 0.5, 0.4)], {"decode": 2.0, "read": 8.0}),
    ],
)
def test_a_gain_that_may_be_chance_explains_nothing(tried, predicted):
    assert explained([out(stage, gain, low=low) for stage, gain, low in tried], predicted) == []


def test_a_gain_that_may_be_chance_leaves_the_account_to_speak_if_it_does_not_speak_against_it():
    tried = [out("handover", 1.89, low=-0.64), out("collate", 0.1)]
    assert explained(tried, {"handover": 3.2, "collate": 0.2}) == [("handover", "accounted")]


def test_where_nothing_could_be_left_out_the_account_alone_speaks_and_says_so():
    assert explained([], {"sample": 9.0, "collate": 0.05}) == [("sample", "accounted")]


def test_where_all_are_small_none_is_named():
    assert explained([out("read", 0.05), out("decode", 0.03)], {"read": 0.05, "decode": 0.05}) == []


@given(st.floats(0, 1e6))
def test_a_saving_is_a_part(gain):
    assert 0 <= saved(gain) <= 1
    assert saved(gain) <= saved(gain + 1)


def test_twice_as_fast_saves_half():
    assert saved(1.0) == 0.5
    assert saved(math.inf) == 1.0


def test_kinds_of_time():
    uses = [use("read", 5, 0.2, num_bytes=1000), use("decode", 5, 4.9), use("transform", 5, 1), use("handover", 1)]
    rows = {row.stage: row.kind for row in find_stages(uses, [], limit="read")}
    assert rows == {"read": "disk", "decode": "cpu", "transform": "waiting", "handover": "copy"}


def test_shares_add_up_to_one():
    rows = find_stages([use("read", 5), use("decode", 3), use("collate", 2)], [], limit=None)
    assert sum(row.share for row in rows) == pytest.approx(1)


@given(st.floats(1, 1e5))
def test_more_accelerators_need_as_many_times_more(need):
    world = World(wall_ms={"decode": 2}, num_workers=2)
    timed = world.timed("L", accounts=True, num_epochs=1, max_batches=20)
    sheet = resources_for(need, timed=timed, uses=timed.uses, memory_bytes=1 << 20, shm_bytes=None)
    assert [one.num_accelerators for one in sheet] == [1, 2, 4, 8]
    for one in sheet:
        assert one.cores == pytest.approx(one.num_accelerators * sheet[0].cores)
        assert one.workers == one.num_accelerators * sheet[0].workers
        assert one.memory_bytes == one.num_accelerators << 20
        assert one.shm_bytes is None
    assert sheet[0].workers >= need * 0.002 * 0.8


def test_who_waits_for_a_core_computes():
    crowded = StageUse(stage="decode", wall_s=51, cpu_s=10, awake_s=50, num_samples=1000, num_servers=2)
    asleep = dataclasses.replace(crowded, stage="read", awake_s=10.5)
    kinds = {row.stage: row.kind for row in find_stages([crowded, asleep], [], limit=None, is_noisy=True)}
    assert kinds == {"decode": "cpu", "read": "waiting"}
