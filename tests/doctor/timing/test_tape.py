"""When a run is over: not before its window is as long as was wished for."""

import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headrace.doctor.timing.crew import Crew
from headrace.doctor.timing.tape import MAX_STEPS, Goal, Tape
from headrace.doctor.timing.windows import find_window

STEP_S, START_S = 0.01, 0.05


def run(crew, goal, size, says_size):
    """Epochs of `size` batches (None: endless) at a steady pace, until the goal says stop."""
    tape, now, epoch = Tape(), 0.0, 0
    while True:
        known = size if says_size or epoch else None  # once it was walked to its end, it is known
        goal.begin_epoch(now, known)
        asked, num, is_over = now, 0, False
        now += START_S
        while not is_over and (size is None or num < size):
            tape.add(asked, now, epoch, 4)
            now += STEP_S
            asked, num = now, num + 1
            is_over = goal.is_over(num, now)
        tape.end_s = asked
        left = math.inf if known is None else known - num
        tape.end_epoch(num, 0 if size is not None and num == size and not is_over else left)
        if is_over or goal.is_over_after_epoch(num, now):
            return tape
        epoch += 1


crews = st.builds(
    lambda workers, prefetch, kept, on: Crew(
        num_workers=workers, in_flight=workers * prefetch, is_kept=kept or on, runs_on=on, first_steps=3
    ),
    st.integers(0, 6),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    crew=crews,
    window_s=st.floats(0.01, 1),
    size=st.one_of(st.none(), st.integers(1, 150)),
    says_size=st.booleans(),
)
def test_the_window_is_as_long_as_was_wished_for(crew, window_s, size, says_size):
    goal = Goal(crew, began_s=0.0, window_s=window_s, most_s=1e9, num_epochs=None)
    tape = run(crew, goal, size, says_size)
    window, why = find_window(tape.steps, tape.epochs, crew)
    if window is None:
        # The run ended in the tail of an epoch whose length nobody had told.
        assert not says_size, why
        return
    turn = max(1, crew.num_workers) * STEP_S  # what whole turns of the workers may cost, in each epoch
    num_parts = max(1, len(window.stretches))
    tails = 0 if says_size else crew.in_flight * STEP_S
    assert window.seconds >= window_s - num_parts * (turn + tails) - 1e-9


@pytest.mark.parametrize("num_epochs", [1, 4])
def test_epochs_are_counted_whatever_the_window(num_epochs):
    crew = Crew(num_workers=2, in_flight=4)
    goal = Goal(crew, began_s=0.0, window_s=0.01, most_s=1e9, num_epochs=num_epochs)
    tape = run(crew, goal, 30, says_size=True)
    assert tape.epoch_of == [epoch for epoch in range(num_epochs) for _ in range(30)]


def test_the_deadline_ends_everything():
    crew = Crew(num_workers=2, in_flight=4)
    for num_epochs in (None, 5):
        goal = Goal(crew, began_s=0.0, window_s=1e9, most_s=1.0, num_epochs=num_epochs)
        tape = run(crew, goal, None, says_size=False)
        assert 1.0 <= tape.end_s <= 1.0 + 2 * STEP_S


def test_a_record_is_bounded():
    goal = Goal(Crew(num_workers=0, in_flight=0), began_s=0.0, window_s=1e9, most_s=1e9, num_epochs=None)
    goal.begin_epoch(0.0, None)
    num = next(num for num in range(1, 2 * MAX_STEPS) if goal.is_over(num, 1e-6 * num))
    assert num == MAX_STEPS


def test_an_empty_epoch_ends_the_run():
    crew = Crew(num_workers=0, in_flight=0)
    goal = Goal(crew, began_s=0.0, window_s=1.0, most_s=1e9, num_epochs=None)
    assert goal.is_over_after_epoch(0, 0.1)
