"""Durations and lists of codes mean what people write."""

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.options import UNITS_S, parse_codes, parse_duration


@given(st.integers(1, 10**6), st.sampled_from(sorted(UNITS_S)), st.sampled_from(["", " "]))
def test_a_duration_is_a_number_times_its_unit(number, unit, space):
    assert parse_duration(f"{number}{space}{unit}") == pytest.approx(number * UNITS_S[unit])


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2m", 120), ("1500ms", 1.5), ("7", 7), ("0.5 h", 1800), (90.0, 90)]
)
def test_durations_as_people_write_them(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3s", "3 days", "0", "0ms", "1e3", "nan", "s"])
def test_anything_else_is_refused(text):
    with pytest.raises(typer.BadParameter, match="duration"):
        parse_duration(text)


@given(st.lists(st.from_regex(r"\A[A-Z]{2}[0-9]{1,3}\Z"), max_size=5), st.sampled_from([",", ", ", " "]))
def test_a_list_of_codes_comes_back_as_it_was_joined(codes, separator):
    assert parse_codes(separator.join(codes)) == tuple(codes)


def test_no_list_is_an_empty_list():
    assert parse_codes(None) == parse_codes(" ,") == ()
