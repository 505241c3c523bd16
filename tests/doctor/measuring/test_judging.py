"""The decision: which witness is believed when, over all combinations."""

import dataclasses
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.doctor.measuring.assemble import of_one_kind
from headrace.doctor.measuring.conclusion import conclude
from headrace.doctor.measuring.judging import MATTERS, judge, most_lost
from headrace.doctor.measuring.made_up import World, machine
from headrace.doctor.measuring.model import Estimate
from headrace.doctor.measuring.text import render
from headrace.doctor.statistics.interval import Interval

WORLDS = {
    "little, no workers": World(wall_ms={"sample": 0.005}, num_workers=0),
    "much, no workers": World(wall_ms={"sample": 2.0}, num_workers=0),
    "little, workers": World(wall_ms={"sample": 0.005}),
    "much, workers": World(wall_ms={"sample": 1.5}),
}
MEASURED = {name: world.measured() for name, world in WORLDS.items()}


def between(low, width):
    return Estimate(value=low + width / 2, interval=Interval(low, low + width))


@st.composite
def situations(draw):
    """A measurement whose waits, step times, rounds of N and machine are drawn independently of each other."""
    m = MEASURED[draw(st.sampled_from(sorted(MEASURED)))]
    share = between(draw(st.floats(0, 0.9)), draw(st.floats(0, 0.1)))
    waiting = dataclasses.replace(m.waiting, share=share)
    headroom = between(draw(st.floats(-0.3, 3)), draw(st.sampled_from([0.001, 0.03, 0.3, math.inf])))
    if math.isinf(headroom.value):
        headroom = Estimate(value=headroom.interval.low)
    d = m.decomposition
    extra = draw(st.sampled_from([None, between(-0.001, 0.002), between(0.1, 0.01)]))
    extra = extra and dataclasses.replace(
        extra, value=extra.value * d.compute_s.value, interval=Interval(*(
            end * d.compute_s.value for end in (extra.interval.low, extra.interval.high)
        ))
    )  # fmt: skip
    d = dataclasses.replace(d, headroom=headroom, interference_s=extra if m.num_workers else None)
    d = draw(st.sampled_from([d, d, None]))
    noise = draw(st.sampled_from(["quiet", "noisy", "loud", "unknown"]))
    return dataclasses.replace(m, waiting=waiting, decomposition=d, preflight=machine(8, noise))


@settings(max_examples=300, deadline=None)
@given(situations())
def test_no_verdict_contradicts_what_was_seen(m):
    verdict, waits = judge(m, []), m.waiting.share
    most = most_lost(m)
    if verdict == "limited":  # something was waited for
        assert waits.value >= 0.03
        assert most is None or most >= 0.03
    if verdict == "healthy":  # what is waited for does not matter
        assert waits.value < MATTERS
    if (
        most < MATTERS and waits.interval.high < 0.03
    ):  # all that the loader can cost is too little: noise cannot change it
        assert verdict == "healthy"
    if waits.interval.low > 0.6 and m.decomposition is None:
        assert verdict == "limited"


@settings(max_examples=200, deadline=None)
@given(situations())
def test_every_verdict_is_put_into_words(m):
    found = conclude(m)
    assert found.sentence
    assert (found.verdict == "inconclusive") == bool(found.settling)
    if found.verdict == "limited":
        assert found.causes


@given(st.floats(0.03, 1.0))
def test_without_workers_the_waits_decide_however_much_longer_fresh_batches_take(longer):
    m = MEASURED["little, no workers"]
    d = dataclasses.replace(m.decomposition, headroom=between(longer, 0.01))
    found = conclude(dataclasses.replace(m, decomposition=d))
    assert found.verdict == "healthy"
    assert "fresh batches" in found.sentence


def test_with_workers_and_no_rounds_beside_the_step_it_says_what_is_open():
    m = MEASURED["much, workers"]
    share = between(0.001, 0.002)
    d = dataclasses.replace(m.decomposition, headroom=between(0.15, 0.01), interference_s=None)
    open_ = dataclasses.replace(m, decomposition=d, waiting=dataclasses.replace(m.waiting, share=share))
    found = conclude(open_)
    assert found.verdict == "inconclusive"
    assert "fresh batches take longer, is open" in found.sentence
    assert "rounds of N" in found.settling


def test_one_round_each_is_enough_for_a_huge_effect():
    world = World(wall_ms={"decode": 80, "collate": 1}, step_s=0.011)
    runs = world.rounds()
    kept, seen = [], set()
    for run in runs:
        if (
            run.arm.startswith("plain")
            or run.arm.endswith("accounted")
            or (run.arm in {"I", "C"} and run.arm not in seen)
        ):
            seen.add(run.arm)
            kept.append(run)
    for noise in ("quiet", "loud"):
        m = world.measured_from(kept, noise=noise)
        assert m.conclusion.verdict == "limited", m.conclusion.sentence
        first = m.conclusion.causes[0]
        assert (first.cause, first.basis) == ("decode", "accounted")


def test_no_stage_limits_where_the_loader_alone_delivers_more_than_is_needed():
    world = World(wall_ms={"sample": 5.0}, step_s=0.03, burst=(0.18,) * 19 + (16.5,))
    runs = [
        run
        for run in world.rounds(num_blocks=3)
        if not (run.arm in {"L", "N"} and run.block is not None and run.block < 100)
    ]
    m = world.measured_from(runs)
    assert m.decomposition.supply_ratio.value > 1.2
    assert not m.decomposition.is_supply_paired
    assert [cause.cause for cause in m.conclusion.causes] == ["burst"]
    assert not any(row.is_limit for row in m.stages)
    assert "not paired" in render(m)


def test_rates_of_whole_epochs_and_steady_ones_are_not_mixed():
    runs = World(wall_ms={"decode": 9}).rounds()
    places = [at for at, run in enumerate(runs) if run.arm == "I"]

    def whole(run):
        window = dataclasses.replace(run.timed.window, has_starts=True)
        return dataclasses.replace(run, timed=dataclasses.replace(run.timed, window=window))

    mixed = [whole(run) if at == places[0] else run for at, run in enumerate(runs)]
    found, told = of_one_kind(mixed)
    assert found[places[0]].timed.window is None
    assert found[places[0]].failure
    assert runs[places[0]].id in told[0]
    found, told = of_one_kind([whole(run) if at in places else run for at, run in enumerate(runs)])
    assert all(found[at].timed.window is not None for at in places)
    assert "a steady rate of I" in told[0]


def test_a_factor_of_two_in_every_pair_is_believed_on_a_loud_machine_however_few_there_are():
    m = World(wall_ms={"decode": 12}, step_s=0.02).measured_from(World(wall_ms={"decode": 12}).rounds(num_blocks=1))
    vague = dataclasses.replace(m.waiting, share=Estimate(value=0.55, interval=Interval(0.3, 0.8)))
    d = dataclasses.replace(m.decomposition, headroom=Estimate(value=1.3, interval=Interval(-0.9, math.inf)))
    loud = dataclasses.replace(m, waiting=vague, decomposition=d, preflight=machine(8, "loud"))
    assert judge(loud, []) == "limited"
    one_by_one = [dataclasses.replace(run, arm="C") if run.arm == "I" and not run.is_control else run for run in m.runs]
    assert judge(dataclasses.replace(loud, runs=tuple(one_by_one)), []) == "inconclusive"


def test_interference_is_seen_without_rounds_of_n_only_where_it_is_huge_and_explained():
    def without_n(world):
        return world.measured_from([run for run in world.rounds() if run.arm != "N"]).conclusion

    crowded = World(wall_ms={"transform": 8}, step_s=0.015, interference=3.0, cores=2)
    assert [cause.cause for cause in without_n(crowded).causes][:1] == ["interference"]
    idle = dataclasses.replace(crowded, wall_ms={"transform": 0.05})  # nobody there to take the step's cores
    assert without_n(idle).verdict != "limited"
    free = dataclasses.replace(crowded, cores=8)
    assert "interference" not in [cause.cause for cause in without_n(free).causes]
