"""index_of inverts sample_id, takes row numbers too, and helps with misspelt ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.plan import Plan
from headrace.errors import ConfigurationError


class StrangersSource:
    """A source without an `index_of` of its own."""

    runs_user_code = True

    def __init__(self, ids):
        self.ids = ids

    def __len__(self):
        return len(self.ids)

    def read_many(self, indices):
        return [self.ids[i] for i in indices]

    def sample_id(self, index):
        return self.ids[index]

    def locate(self, index):
        return None

    def fingerprint(self):
        return repr(self.ids)


IDS = st.one_of(
    st.lists(st.text("ab1/", max_size=4), unique=True, min_size=1, max_size=8),
    st.lists(st.integers(-3, 10), unique=True, min_size=1, max_size=8),
)


@given(IDS)
def test_inverts_sample_id_for_any_source(ids):
    for plan in (Plan(StrangersSource(ids)), hr.arrays(list(range(len(ids))), ids=ids)):
        assert [plan.index_of(plan.sample_id(row)) for row in range(len(plan))] == list(range(len(ids)))


def test_an_exact_id_goes_before_a_row_number():
    assert hr.arrays([0, 0, 0], ids=[2, 0, 7]).index_of(2) == 0
    assert hr.arrays([0, 0, 0], ids=["1", "x", "y"]).index_of("1") == 0


def test_a_row_number_will_do():
    plan = hr.arrays([0, 0, 0], ids=["a", "b", "c"])
    assert plan.index_of(2) == plan.index_of("2") == 2
    assert hr.arrays([0, 0, 0]).index_of("2") == 2
    assert Plan.of([0, 0, 0]).index_of("1") == 1
    assert Plan(StrangersSource(["a", "b"])).index_of(1) == 1


@pytest.mark.parametrize(
    ("unknown", "hint"),
    [
        ("cat/11.png", "; did you mean 'cat/1.png'?"),
        ("dog/3.png", "; did you mean 'cat/3.png'?"),
        ("cat/3.jpg", "; did you mean 'cat/3.png'?"),
        ("zebra", ""),
        (12, ""),
        ("-1", ""),
    ],
)
def test_an_unknown_id_names_the_nearest(unknown, hint):
    plan = hr.arrays([0, 0], ids=["cat/1.png", "cat/3.png"])
    with pytest.raises(ConfigurationError) as caught:
        plan.index_of(unknown)
    assert caught.value.what == f"no sample has the id {unknown!r}{hint}"
    assert caught.value.do == ("give an id as `sample_ids` shows it, or a row number 0..1",)
