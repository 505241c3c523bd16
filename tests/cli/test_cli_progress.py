"""Without a terminal, progress is at most one line in half a minute; items pass through unchanged."""

import io
import threading

from hypothesis import given
from hypothesis import strategies as st

from headrace.cli import progress
from headrace.cli.progress import LINE_EVERY_S, Heartbeat, Task, bar, spinner


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


@given(st.floats(0.1, 1000), st.floats(0, 5000))
def test_a_task_says_its_message_and_the_share_of_the_budget_that_is_used(budget_s, elapsed_s):
    clock = FakeClock()
    task = Task("loading", budget_s, clock)
    clock.now += elapsed_s
    task("reading")
    share = min(1.0, elapsed_s / budget_s)
    text = str(task)
    assert text.startswith("reading (")
    assert abs(float(text.partition("(")[2].partition("%")[0]) - 100 * share) <= 1
    assert f"of {budget_s:g} s used" in text


def test_without_a_budget_there_is_no_share():
    assert str(Task("reading", None)) == "reading"


def test_a_task_that_says_nothing_is_seen_to_run_all_the_same(monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.01)
    stream, is_written = io.StringIO(), threading.Event()
    write = stream.write
    monkeypatch.setattr(stream, "write", lambda text: (write(text), is_written.set()))
    with spinner("a long experiment", stream, budget_s=90):
        assert is_written.wait(20)
    assert "s: a long experiment (0% of 90 s used)" in stream.getvalue()
    assert "headrace-progress" not in {thread.name for thread in threading.enumerate()}
