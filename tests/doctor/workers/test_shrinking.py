"""Whatever fails, what is left fails too, no single part of it can be left out, and the tries are bounded."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.walks.shrinking import shrink

NUMBERS = st.lists(st.integers(), unique=True, min_size=1, max_size=40)


@given(items=NUMBERS, data=st.data())
def test_samples_that_fail_only_together_are_all_that_is_left(items, data):
    guilty = set(data.draw(st.lists(st.sampled_from(items), min_size=1, unique=True)))
    found = shrink(items, guilty.issubset, max_tries=10_000)
    assert found.items == tuple(one for one in items if one in guilty)
    assert found.is_fewest


@given(items=NUMBERS, data=st.data())
def test_any_of_several_is_enough(items, data):
    guilty = set(data.draw(st.lists(st.sampled_from(items), min_size=1, unique=True)))
    found = shrink(items, lambda some: not guilty.isdisjoint(some), max_tries=10_000)
    assert len(found.items) == 1
    assert set(found.items) <= guilty


@given(items=st.lists(st.integers(), min_size=1, max_size=12), seed=st.randoms(use_true_random=False))
def test_an_unruly_failure_still_ends_in_something_that_was_seen_to_fail(items, seed):
    seen = {}

    def fails(some):
        assert tuple(some) not in seen or len(set(items)) < len(items), "tried twice"
        return seen.setdefault(tuple(some), seed.random() < 0.5)

    found = shrink(items, fails, max_tries=30)
    assert found is None or seen[found.items]
    assert found is None or found.num_tries <= 30


@given(items=NUMBERS, max_tries=st.integers(1, 8))
def test_no_more_tries_than_allowed(items, max_tries):
    calls = []
    found = shrink(items, lambda some: calls.append(some) or items[-1] in some, max_tries=max_tries)
    assert len(calls) == found.num_tries <= max_tries
    assert items[-1] in found.items


def test_what_does_not_fail_again_is_not_shrunk():
    assert shrink([1, 2, 3], lambda some: False) is None
    assert shrink([], lambda some: True) is None
