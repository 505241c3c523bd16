"""The window hands over in order, never holds more than it may, and never gives a worker more than it can hold."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.run.messages import Kind, Message
from headrace.engine.run.window import Window
from headrace.errors import ConfigurationError


@given(
    num_workers=st.integers(1, 4),
    prefetch_factor=st.integers(1, 3),
    num_orders=st.integers(0, 40),
    first_seq=st.integers(0, 5),
    is_pinned=st.booleans(),
    luck=st.randoms(use_true_random=False),
)
def test_any_sequence_of_answers_leaves_in_order(
    num_workers, prefetch_factor, num_orders, first_seq, is_pinned, luck: random.Random
):
    window = Window(num_workers, prefetch_factor, first_seq)
    orders = list(range(num_orders))
    at_work: list[list[tuple[int, int]]] = [[] for _ in range(num_workers)]  # the model: a list for each worker
    results = []
    while orders or not window.is_empty:
        while orders and window.has_room:
            worker = window.choose(luck.randrange(num_workers) if is_pinned else None)
            if worker is None:
                assert is_pinned  # without pins, room means that somebody has a free hand
                break
            assert len(at_work[worker]) < prefetch_factor
            if not is_pinned:
                assert len(at_work[worker]) == min(map(len, at_work))
            order = orders.pop(0)
            at_work[worker].append((window.assign(worker, order), order))
        busy = [worker for worker in range(num_workers) if at_work[worker]]
        if busy:
            worker = luck.choice(busy)
            seq, order = at_work[worker].pop(0)
            assert next(iter(window.unanswered(worker).items())) == (seq, order)
            assert window.answer(Message(worker, Kind.RESULT, seq, order))
            assert not window.answer(Message(worker, Kind.RESULT, seq, order))  # nobody waits for it twice
        while window.is_ready:
            results.append(window.pop().value)
        assert sum(map(len, at_work)) <= num_workers * prefetch_factor
    assert results == list(range(num_orders))


def test_answers_to_orders_of_an_earlier_run_are_ignored():
    window = Window(2, 2, first_seq=10)
    window.assign(0, "a")
    assert not window.answer(Message(0, Kind.RESULT, 3, "stale"))
    assert not window.is_ready


def test_a_pin_to_nobody_is_refused():
    with pytest.raises(ConfigurationError, match=r"^an order is pinned to worker 2, but workers are 0\.\.1"):
        Window(2, 2).choose(2)
