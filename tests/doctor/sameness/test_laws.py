"""Laws of the pure comparison, over made-up deliveries."""

import collections
import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.evidence.equivalence import LEVELS
from headrace.doctor.sameness.comparing import compare_passports
from headrace.doctor.sameness.multiset import IdSum, chain_hash
from headrace.doctor.sameness.passport import Batch, Epoch, Introduction, Passport, Sample, SharedDraws, Stopped, Traits

TRAITS = Traits(rates={"x": 0.0, "noise": 0.9, "y": 0.0}, targets=("y",), num_samples=16)


def sample(row, x=None, y=None, noise=0):
    fields = {
        "x": f"uint8[4]:{row if x is None else x}",
        "y": f"int64[]:{row % 3 if y is None else y}",
        "noise": f"float32[]:{noise}",
    }
    return Sample(row, row, fields)


def epoch(samples, number=0, size=4, **said):
    batches = [samples[start : start + size] for start in range(0, len(samples), size)]
    return Epoch(batches=tuple(Batch(epoch=number, samples=tuple(one), **said) for one in batches))


def passport(*epochs, frozen=None, num_workers=0, **said):
    introduction = Introduction(
        kind="Loader", num_workers=num_workers, has_rows=True, has_names=False, draws_by_key=False, seed=None
    )
    return Passport(introduction=introduction, epochs=epochs, frozen=frozen, **{"traits": TRAITS, **said})


def compared(a, b, levels=LEVELS[:5]):
    return compare_passports(a, b, specs=("a", "b"), levels=levels)


def verdict_at(found, level):
    return found.levels[LEVELS.index(level)].verdict


rows = st.lists(st.integers(0, 12), max_size=20)
deliveries = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12
).map(lambda parts: passport(epoch([sample(row, x, y, noise) for row, x, y, noise in parts])))


@given(deliveries)
def test_a_delivery_is_the_same_as_itself(one):
    found = compared(one, one)
    assert found.verdict == "same"
    assert all(level.verdict == "proven" for level in found.levels[:5])


@given(deliveries, deliveries)
def test_the_verdict_does_not_depend_on_the_side(a, b):
    one, other = compared(a, b), compared(b, a)
    assert one.verdict == other.verdict
    assert [level.verdict for level in one.levels] == [level.verdict for level in other.levels]


@given(rows, rows)
def test_samples_are_the_same_if_and_only_if_the_multisets_are(a, b):
    found = compared(passport(epoch(list(map(sample, a)))), passport(epoch(list(map(sample, b)))), ("E0",))
    if a or b:
        assert (verdict_at(found, "E0") == "proven") == (collections.Counter(a) == collections.Counter(b))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.data())
def test_one_loss_and_one_repetition_are_caught_and_named(ids, data):
    place = data.draw(st.integers(0, len(ids) - 1))
    lost, repeated = [*ids[:place], *ids[place + 1 :]], [*ids, ids[place]]
    for other in (lost, repeated):
        found = compared(passport(epoch(list(map(sample, ids)))), passport(epoch(list(map(sample, other)))), ("E0",))
        assert verdict_at(found, "E0") == "differs"
        assert found.levels[0].first.sample_id == ids[place]


def test_two_samples_that_are_both_delivered_twice_do_not_cancel_out():
    assert IdSum.of([1, 1, 2, 3]) != IdSum.of([1, 2, 2, 3])
    assert IdSum.of([1, 1, 2, 2, 3]) != IdSum.of([3, 4, 4, 5, 5])
    found = compared(passport(epoch([sample(row) for row in (1, 1, 2, 2)])), passport(epoch([sample(1), sample(2)])))
    assert verdict_at(found, "E0") == "differs"


@given(st.lists(rows, max_size=5), st.randoms())
def test_shares_of_several_workers_merge_in_any_order(shares, chance):
    whole = IdSum.of(itertools.chain.from_iterable(shares))
    sums = [IdSum.of(share) for share in shares]
    chance.shuffle(sums)
    assert sum(sums, IdSum()) == whole


@given(rows, rows)
def test_the_chain_knows_order_and_batches(a, b):
    assert (chain_hash([a]) == chain_hash([b])) == (a == b)
    assert chain_hash([a, b]) != chain_hash([[*a, *b]])


@given(st.permutations(range(9)))
def test_another_order_is_told_apart_from_other_samples(order):
    found = compared(passport(epoch(list(map(sample, range(9))))), passport(epoch(list(map(sample, order)))))
    assert [verdict_at(found, level) for level in ("E0", "E2", "E3", "E4")] == ["proven"] * 4
    moved = [place for place, row in enumerate(order) if row != place]
    assert (verdict_at(found, "E1") == "differs") == bool(moved)
    if moved:
        assert found.first_level.first.position == moved[0]


def test_other_batches_of_the_same_order():
    samples = list(map(sample, range(8)))
    found = compared(passport(epoch(samples)), passport(epoch(samples, size=3)))
    assert (found.first_level.level, found.first_level.first.batch) == ("E1", 0)
    assert (found.first_level.first.in_a, found.first_level.first.in_b) == ("4 samples", "3 samples")


@given(st.integers(0, 8), st.sampled_from(["x", "y"]))
def test_one_changed_value_is_found_at_its_level_whatever_the_order(row, field):
    a = passport(epoch(list(map(sample, range(9)))))
    changed = [sample(one, **({field: 77} if one == row else {})) for one in reversed(range(9))]
    found = compared(a, passport(epoch(changed)), ("E0", "E2", "E3", "E4"))
    assert found.first_level.level == {"x": "E3", "y": "E2"}[field]
    assert (found.first_level.first.sample_id, found.first_level.num_different) == (row, 1)


def test_rows_that_are_numbered_otherwise_are_told_from_damage():
    a = passport(epoch(list(map(sample, range(6)))))
    turned = [dataclasses.replace(sample(5 - row), row=row, name=row) for row in range(6)]
    assert "in another order" in compared(a, passport(epoch(turned))).first_level.reason
    turned[2] = dataclasses.replace(turned[2], fields=sample(77).fields)
    assert "in another order" not in compared(a, passport(epoch(turned))).first_level.reason


def noisy(seed, number=0):
    return epoch([sample(row, noise=(seed, row, number)) for row in range(20)], number)


def test_random_fields_are_compared_by_a_named_policy():
    frozen = noisy(0)
    a, b = passport(noisy(1), noisy(1, 1), frozen=frozen), passport(noisy(2), noisy(2, 1), frozen=frozen)
    found = compared(a, b)
    assert (verdict_at(found, "E4"), found.policy) == ("proven", "stream")
    found = compared(*(dataclasses.replace(one, epochs=one.epochs[:1]) for one in (a, b)))
    assert (verdict_at(found, "E4"), found.policy) == ("proven", "frozen")
    found = compared(a, dataclasses.replace(b, epochs=a.epochs))
    assert (verdict_at(found, "E4"), found.policy) == ("proven", "counter")
    found = compared(a, dataclasses.replace(b, frozen=noisy(3)))
    assert (verdict_at(found, "E4"), found.policy) == ("differs", "frozen")
    found = compared(a, dataclasses.replace(b, frozen=None))
    assert (verdict_at(found, "E4"), found.exit_status) == ("not comparable", 3)


def test_draws_that_are_shared_or_repeated_are_no_equal_randomness():
    frozen = noisy(0)
    a, b = passport(noisy(1), noisy(1, 1), frozen=frozen), passport(noisy(2), noisy(2, 1), frozen=frozen)
    shared = dataclasses.replace(b, shared_draws=(SharedDraws(generator="torch", samples=(0, 4)),))
    found = compared(a, shared)
    assert (verdict_at(found, "E4"), found.first_level.first.sample_id) == ("differs", 4)
    again = Epoch(batches=tuple(dataclasses.replace(batch, epoch=1) for batch in noisy(2).batches))
    found = compared(a, dataclasses.replace(b, epochs=(noisy(2), again)))
    assert verdict_at(found, "E4") == "differs"
    assert found.first_level.reason == "B repeats its random draws in every epoch"


def test_a_field_that_is_random_on_one_side_only_differs():
    fixed = dataclasses.replace(TRAITS, rates={**TRAITS.rates, "noise": 0.0})
    found = compared(passport(noisy(1), frozen=noisy(0)), passport(noisy(2), frozen=noisy(0), traits=fixed))
    assert "noise is random in A and fixed in B" in found.first_level.reason


def test_a_walk_that_was_cut_off_proves_nothing_and_still_shows_a_difference():
    samples = list(map(sample, range(8)))
    cut = dataclasses.replace(epoch(samples[:4]), is_whole=False)
    stopped = Stopped(epoch=0, reason="over budget", is_error=False)
    found = compared(passport(epoch(samples)), passport(cut, stopped=stopped))
    assert (found.verdict, verdict_at(found, "E0"), verdict_at(found, "E1")) == (
        "inconclusive",
        "not comparable",
        "not comparable",
    )
    cut = dataclasses.replace(epoch([sample(0), sample(1, y=9)]), is_whole=False)
    found = compared(passport(epoch(samples)), passport(cut, stopped=stopped))
    assert (found.verdict, found.first_level.level) == ("different", "E2")


def test_an_exception_on_one_side_is_a_loss():
    samples = list(map(sample, range(8)))
    cut = dataclasses.replace(epoch(samples[:4]), is_whole=False)
    found = compared(
        passport(epoch(samples)), passport(cut, stopped=Stopped(epoch=0, reason="OSError: gone", is_error=True))
    )
    assert (found.first_level.level, found.first_level.first.sample_id) == ("E0", 4)


def test_a_side_that_was_only_left_earlier_has_lost_nothing():
    samples = list(map(sample, range(8)))
    failed = passport(
        dataclasses.replace(epoch(samples[:6]), is_whole=False), stopped=Stopped(epoch=0, reason="e", is_error=True)
    )
    left = passport(
        dataclasses.replace(epoch(samples[:4]), is_whole=False), stopped=Stopped(epoch=0, reason="b", is_error=False)
    )
    assert compared(failed, left).verdict == compared(left, failed).verdict == "inconclusive"


def test_refused_samples_belong_to_the_delivery():
    samples = list(map(sample, range(8)))
    replaced = epoch(samples, refused=(3,))
    found = compared(passport(epoch(samples)), passport(replaced))
    assert (found.first_level.level, found.first_level.first.sample_id) == ("E0", 3)


def test_nothing_delivered_proves_nothing():
    assert compared(passport(epoch([])), passport(epoch([]))).verdict == "inconclusive"
    assert compared(passport(), passport()).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("form", "digest", "verdict"),
    [("float32 [4]", "u:1", "proven"), ("float64 [4]", "u:1", "differs"), ("float32 [4]", "u:2", "differs")],
)
def test_delivered_batches(form, digest, verdict):
    fixed = dataclasses.replace(TRAITS, rates={"x": 0.0, "y": 0.0})
    samples = list(map(sample, range(4)))
    a = passport(epoch(samples, form={"x": "float32 [4]"}, digests={"x": "u:1"}), traits=fixed)
    b = passport(epoch(samples, form={"x": form}, digests={"x": digest}), traits=fixed)
    assert verdict_at(compared(a, b, LEVELS), "E5") == verdict
