"""Without a terminal, progress is at most one line in half a minute; items pass through unchanged."""

import io

from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.progress import LINE_EVERY_S, Heartbeat, bar, spinner


class FakeClock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@given(st.lists(st.integers(0, 100), max_size=50))
def test_lines_are_at_least_the_interval_apart(steps):
    clock, stream = FakeClock(), io.StringIO()
    beat = Heartbeat(stream, clock)
    last, expected = clock.now, []
    for step in steps:
        clock.now += step
        beat("reading")
        if clock.now - last >= LINE_EVERY_S:
            expected.append(f"headrace: {clock.now - 100:.0f} s: reading")
            last = clock.now
    assert stream.getvalue().splitlines() == expected


@given(st.lists(st.integers()))
def test_a_bar_passes_every_item_on(items):
    assert list(bar(items, "counting", len(items), stream=io.StringIO())) == items


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_message():
    screen = Terminal()
    with spinner("examining train.py:[loader]", screen) as say:
        say("sample 3 of 9 [read]")
    assert list(bar(range(3), "counting", 3, stream=screen)) == [0, 1, 2]
    assert "sample 3 of 9 [read]" in screen.getvalue()
    assert "counting" in screen.getvalue()
