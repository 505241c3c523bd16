import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.statistics.interval import Interval

finite = st.floats(-5, 5)


@given(finite, st.floats(0, 5), st.floats(0, 5))
def test_an_interval_never_lies_within_and_outside_a_margin(middle, half_width, margin):
    interval = Interval.around(middle, half_width)
    assert not (interval.lies_within(margin) and interval.lies_outside(margin))


@given(finite, st.floats(0, 5), st.floats(0, 5))
def test_the_mirror_image_lies_where_the_interval_does(middle, half_width, margin):
    one, other = Interval.around(middle, half_width), Interval.around(-middle, half_width)
    assert one.lies_within(margin) == other.lies_within(margin)
    assert one.lies_outside(margin) == other.lies_outside(margin)
    assert one.farthest == other.farthest


def test_what_nothing_bounds_has_no_bounds_as_a_ratio_either():
    assert Interval(-math.inf, math.inf).exp() == Interval(0.0, math.inf)
    assert Interval(0.0, 1e6).exp() == Interval(1.0, math.inf)
    assert Interval(math.log(0.5), math.log(3)).exp().high == pytest.approx(3)
