import json
import math

import pytest

from headrace.doctor.measuring.json import to_json
from headrace.doctor.measuring.made_up import World
from headrace.doctor.measuring.model import Estimate
from headrace.doctor.measuring.text import render
from headrace.doctor.measuring.wording import bytes_text, gain, percent, rate, seconds_text
from headrace.doctor.statistics.interval import Interval


@pytest.fixture(scope="module")
def limited():
    return World(wall_ms={"read": 1, "decode": 8, "collate": 0.1}).measured()


@pytest.fixture(scope="module")
def healthy():
    return World(wall_ms={"decode": 1}).measured()


@pytest.mark.parametrize("width", [80, 100])
def test_it_fits_the_width_in_plain_ascii(limited, healthy, width):
    for found in (limited, healthy):
        text = render(found, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert text.isascii()


def test_the_verdict_comes_first_then_what_to_do_then_the_plain_table(limited):
    text = render(limited)
    assert text.startswith("VERDICT  The loop waits for data ")
    assert (
        text.index("\ncause ")
        < text.index("\ndo ")
        < text.index("\nplain ")
        < text.index("\nstep ")
        < text.index("\nstage ")
    )
    assert "decoding is the limit" in " ".join(text.split())
    assert "<- limit" in text


def test_a_healthy_loop_gets_fewer_lines(limited, healthy):
    assert render(healthy).startswith("VERDICT  Nothing to fix: ")
    assert len(render(healthy).splitlines()) < len(render(limited).splitlines()) / 1.5


def test_every_table_of_rates_carries_the_cache_label(limited):
    assert render(limited).count("warm-verified") >= 3


def test_colour_is_only_where_it_was_asked_for(limited):
    assert "\x1b[" not in render(limited)
    assert render(limited, color=True).replace("\x1b[1;31m", "").replace("\x1b[0m", "") == render(limited)


def test_json_holds_the_whole_record_and_no_number_that_json_does_not_know(limited):
    told = json.loads(to_json(limited), parse_constant=lambda name: pytest.fail(name))
    assert told["schema"] == 1
    assert told["exit_status"] == 1
    assert told["conclusion"]["causes"][0]["cause"] == "decode"
    assert len(told["runs"]) == len(limited.runs)
    assert told["decomposition"]["transfer_s"] is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (percent(0.312), "31 %"),
        (percent(0.0312), "3.1 %"),
        (percent(math.inf), "without bound"),
        (gain(Estimate(value=0.32, interval=Interval(0.25, 0.4))), "+32 % [25, 40]"),
        (gain(Estimate(value=7.3)), "x8.3"),
        (rate(1280.4, Interval(1255.0, 1306.0)), "1,280 samples/s +-2 %"),
        (seconds_text(0.0402), "40 ms"),
        (seconds_text(1.34), "1.3 s"),
        (bytes_text(3 << 29), "1.5 GiB"),
    ],
)
def test_numbers(said, expected):
    assert said == expected
