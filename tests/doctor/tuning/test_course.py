"""The course of a tuning on made-up rigs: what is kept, changed, refused; time is made up as well."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.choice import Limits
from headrace.doctor.tuning.course import Course
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.model import Proof
from headrace.doctor.tuning.pace import Wishes
from headrace.errors import TargetError

_SPEC = importlib.util.spec_from_file_location("machines", pathlib.Path(__file__).with_name("machines.py"))
MACHINES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(MACHINES)

FACTS = LoaderNow(
    library="torch",
    kind="torch.utils.data.DataLoader",
    present=Setting(num_workers=2, prefetch_factor=2, persistent_workers=False, pin_memory=False),
    num_samples=10_000,
    batch_size=10,
    num_cores=8,
    cannot={"loader": "no"},
)
RATES = {0: 100, 1: 200, 2: 400, 4: 800, 8: 1600}


def course(rates=RATES, *, compute=None, need=None, budget=300.0, memory=None, facts=FACTS, **rig):
    made = MACHINES.MadeUpRig(facts, rates, compute=compute, budget=budget, **rig)
    wishes = Wishes(
        need_per_s=need,
        has_step=compute is not None,
        step_name="train.py:step",
        margin=0.25,
        budget_s=budget,
        workers_max=None,
        limits=Limits(memory_bytes=memory),
        seed=3,
        window_s=1.0,
    )
    return Course(made, wishes, facts, lambda _: None)


def test_a_present_setting_that_is_enough_is_kept_without_a_search():
    tried = course(need=300)
    choice = tried.run()
    assert (choice.outcome, choice.meets_need) == ("keep", True)
    assert {setting for kind, setting in tried.pace.rig.measured} == {AS_IT_IS, Setting(num_workers=0)}
    assert [one for _, one in tried.pace.rig.measured].count(Setting(num_workers=0)) == 1
    assert not tried.pace.rig.proven
    assert choice.simpler is None


@pytest.mark.parametrize("known", [{"need": 80}, {"compute": 80}])
def test_workers_that_nobody_needs_are_told_after_one_look(known):
    tried = course(**known)
    choice = tried.run()
    assert (choice.outcome, choice.meets_need, choice.simpler) == ("keep", True, Setting(num_workers=0))
    assert [one for _, one in tried.pace.rig.measured].count(Setting(num_workers=0)) == 1


def test_a_loader_without_workers_is_not_looked_at_without_them():
    facts = LoaderNow(**{**{key: getattr(FACTS, key) for key in FACTS.__slots__}, "present": Setting(num_workers=0)})
    tried = course(need=80, facts=facts)
    assert tried.run().simpler is None
    assert {setting for _, setting in tried.pace.rig.measured} == {AS_IT_IS}


def test_a_proof_that_takes_too_long_is_tried_again_with_fewer_samples():
    tried = course(need=700, late_above=500)
    assert tried.run().setting == Setting(num_workers=4)
    first, second = tried.pace.rig.compared[:2]
    assert first is None or first > 500 >= second


def test_where_only_the_proof_did_not_come_to_its_end_more_time_is_asked_for():
    tried = course(need=700, late_above=1)
    choice = tried.run()
    assert (choice.outcome, choice.setting, choice.meets_need) == ("inconclusive", None, None)
    assert "no time to compare the data of num_workers=2 -> 4" in choice.why
    assert "--budget" in choice.why
    assert tried.pace.rig.left_s >= 0


def test_the_simplest_that_is_enough_is_chosen():
    choice = course(need=700).run()
    assert (choice.outcome, choice.setting, choice.meets_need) == ("change", Setting(num_workers=4), True)


def test_the_need_comes_from_the_step_and_the_margin():
    tried = course(compute=580)
    choice = tried.run()
    assert tried.need.rate_per_s == pytest.approx(725, rel=0.05)
    assert (choice.outcome, choice.setting) == ("change", Setting(num_workers=4))
    gain = tried.notes[choice.setting].gain
    assert gain.interval.low < 580 / 400 - 1 < gain.interval.high


def test_without_a_need_the_fastest_is_looked_for_and_the_cheapest_of_equals_taken():
    choice = course({0: 100, 1: 200, 2: 400, 4: 800, 8: 801}, noise=0.004).run()
    assert (choice.outcome, choice.setting, choice.meets_need) == ("change", Setting(num_workers=4), None)


def test_where_nothing_is_faster_it_is_kept_and_flat_settings_are_listed():
    tried = course({0: 395, 1: 400, 2: 400, 4: 401, 8: 400}, noise=0.004)
    assert tried.run().outcome == "keep"
    rows = tried.notes.rows(tried.finalists, tried.need, tried.pace.wishes.limits)
    assert "num_workers=2 -> 8" in [row.says for row in rows if row.is_flat]


def test_a_setting_whose_data_differ_is_passed_over_and_the_difference_told():
    differs = Proof(same_data="differs", says="target label of sample 23 is 2 as it is, 5 in this setting")
    tried = course(need=700, proofs={4: differs})
    choice = tried.run()
    assert (choice.outcome, choice.setting) == ("change", Setting(num_workers=8))
    (row,) = (
        row for row in tried.notes.rows(tried.finalists, tried.need, Limits()) if row.setting == Setting(num_workers=4)
    )
    assert "sample 23" in row.proof.says


def test_where_all_that_is_faster_differs_nothing_is_changed():
    tried = course(need=700, proofs=dict.fromkeys([0, 1, 4, 8], Proof(same_data="differs", says="no")))
    choice = tried.run()
    assert choice.outcome == "keep"
    assert choice.meets_need is False
    assert choice.why == "of what is faster the data differ, or are not proven to be the same"
    assert choice.binding


def test_a_setting_that_takes_too_much_memory_is_not_chosen():
    choice = course(need=700, memory=1000, memories={4: 5000, 8: 10}).run()
    assert choice.setting == Setting(num_workers=8)


def test_where_nothing_is_enough_the_nearest_is_taken_and_told():
    choice = course(need=5000).run()
    assert (choice.outcome, choice.setting, choice.meets_need) == ("change", Setting(num_workers=8), False)
    assert "5,000/s are needed" in choice.binding[0]


def test_a_budget_that_is_too_short_is_said_before_it_is_spent():
    tried = course(need=700, budget=20.0)
    choice = tried.run()
    assert choice.outcome == "inconclusive"
    assert "--budget" in choice.why
    assert "gave" not in choice.why
    assert tried.pace.rig.left_s > 10


def test_a_budget_that_is_too_short_does_for_a_look_at_no_workers():
    why = course({**RATES, 0: 4000}, need=700, budget=20.0).run().why
    assert "in one round num_workers=2 -> 0 gave 10." in why or "gave 9.9" in why


@pytest.mark.parametrize("budget", [60, 120, 300, 1000])
@pytest.mark.parametrize("round_s", [1.1, 2.0, 5.0])
@pytest.mark.parametrize("compute", [None, 600])
def test_the_budget_is_kept(budget, round_s, compute):
    tried = course(need=700, budget=float(budget), round_s=round_s, compute=compute)
    choice = tried.run()
    assert tried.pace.rig.left_s >= 0, "nothing was begun after the end"
    assert choice.outcome in {"change", "inconclusive"}


def test_a_confirmation_that_is_cut_short_is_no_reason_to_keep_anything():
    """Rounds that become slow after the search: one block is run, and says nothing."""
    tried = course(need=700, budget=120.0, slow_from=20)
    choice = tried.run()
    assert tried.finalists
    assert tried.left_out
    assert choice.outcome == "inconclusive"


def test_a_loader_that_does_not_run_is_said():
    with pytest.raises(TargetError, match="does not run as it is: SIGKILL"):
        course(need=700, failures={2: "SIGKILL"}).run()


def test_a_loop_that_fails_is_told_and_is_no_crash_of_ours():
    tried = course(compute=300, kinds_that_fail={"I"})
    choice = tried.run()
    assert choice.outcome == "inconclusive"
    assert any("a round of the loop failed, as it is: no" in one for one in tried.left_out)


def test_a_setting_that_cannot_be_run_is_told_and_does_not_end_the_search():
    tried = course(need=700, failures={8: "no memory"})
    assert tried.run().setting == Setting(num_workers=4)
    (row,) = (
        row for row in tried.notes.rows(tried.finalists, tried.need, Limits()) if row.setting == Setting(num_workers=8)
    )
    assert row.failure == "no memory"


def test_of_a_loader_that_cannot_be_changed_is_said_whether_it_is_enough():
    fixed = LoaderNow(library="other", kind="Own", present=AS_IT_IS, num_samples=100, cannot={"workers": "it has none"})
    assert course({None: 400}, need=300, facts=fixed).run().meets_need is True
    choice = course({None: 400}, need=500, facts=fixed).run()
    assert (choice.outcome, choice.meets_need, choice.why) == ("keep", False, "there is nothing to try")
