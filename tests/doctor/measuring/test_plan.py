from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.measuring.plan import LOOP_SHARE, Pilot, knock_outs_that_fit, make_plan
from headrace.doctor.timing.timed import StageUse

pilots = st.builds(
    Pilot, batch_s=st.floats(1e-4, 0.5), loader_batch_s=st.floats(1e-4, 0.5), extra_s=st.floats(0.1, 3.0)
)


def plan_of(pilot, **more):
    wishes = {
        "left_s": 50.0,
        "num_workers": 2,
        "plain_workers": [0, 2],
        "has_step": True,
        "has_device": False,
        "num_batches": None,
    }
    return make_plan(pilot, **(wishes | more))


@given(pilots, st.floats(5, 600), st.integers(0, 8))
def test_what_is_planned_fits_or_is_the_least_there_can_be(pilot, left_s, num_workers):
    plan = plan_of(pilot, left_s=left_s, num_workers=num_workers)
    assert plan.num_blocks == 1 or plan.num_blocks * plan.block_s <= LOOP_SHARE * left_s + 1e-6
    assert 1 <= plan.num_plain <= 3
    assert plan.window_s >= 10 * pilot.batch_s
    assert plan.plain_batches >= 2


@given(pilots, st.floats(5, 300))
def test_more_time_never_gives_less(pilot, left_s):
    less, more = plan_of(pilot, left_s=left_s), plan_of(pilot, left_s=2 * left_s)
    assert len(more.arms) >= len(less.arms)
    assert more.num_plain >= less.num_plain
    assert more.num_blocks * (len(more.arms) + 2) >= less.num_blocks * (len(less.arms) + 2)


def test_a_usual_loop_gets_everything_in_a_minute():
    plan = plan_of(Pilot(batch_s=0.02, loader_batch_s=0.01, extra_s=0.4))
    assert plan.arms == ("C", "L", "N")
    assert plan.num_plain == 3
    assert plan.left_out == ()


def test_what_does_not_fit_is_said_together_with_what_would_do():
    plan = plan_of(Pilot(batch_s=0.02, loader_batch_s=0.01, extra_s=3.0), left_s=20)
    assert plan.arms == ("C",)
    assert any("--budget" in one for one in plan.left_out)


def test_a_device_is_copied_to_and_no_workers_disturb_nobody():
    assert "Ct" in plan_of(Pilot(batch_s=0.02, loader_batch_s=0.01, extra_s=0.1), has_device=True).arms
    assert "N" not in plan_of(Pilot(batch_s=0.02, loader_batch_s=0.01, extra_s=0.1), num_workers=0).arms


def use(stage, wall_s):
    return StageUse(stage=stage, wall_s=wall_s, cpu_s=0, num_samples=1, num_servers=2)


def test_only_stages_that_matter_are_left_out_in_turn():
    uses = [use("read", 1.0), use("decode", 8.0), use("collate", 0.1)]
    stages, num_blocks = knock_outs_that_fit(uses, num_workers=2, left_s=30, round_s=1.0)
    assert stages == ("decode", "read")
    assert num_blocks == 3


@given(st.floats(0, 100), st.floats(0.1, 5))
def test_knock_outs_fit_into_their_time(left_s, round_s):
    uses = [use("read", 3.0), use("decode", 8.0), use("collate", 3.0)]
    stages, num_blocks = knock_outs_that_fit(uses, num_workers=2, left_s=left_s, round_s=round_s)
    assert 2 * num_blocks * (len(stages) + 1) * round_s <= left_s or not stages
