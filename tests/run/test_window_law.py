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
    luck=st.randoms(use_true_random=False),
)
def test_any_sequence_of_answers_leaves_in_order(
    num_workers, prefetch_factor, num_orders, first_seq, luck: random.Random
):
    window = Window(num_workers, prefetch_factor, first_seq)
    orders = list(range(num_orders))
    shared: list[tuple[int, int]] = []  # the model: what lies there for anybody, and a list for each worker
    bound: list[list[tuple[int, int]]] = [[] for _ in range(num_workers)]
    results = []
    while orders or not window.is_empty:
        while orders and window.has_room:
            pin = luck.choice([None, luck.randrange(num_workers)])
            assert window.can_take(pin) == (pin is None or len(bound[pin]) < prefetch_factor)
            if not window.can_take(pin):
                break
            order = orders.pop(0)
            if pin is None and luck.random() < 0.2:  # too long for the common place
                pin = window.least_bound()
                assert len(bound[pin]) == min(map(len, bound))
            (shared if pin is None else bound[pin]).append((window.take(order, pin), order))
            assert window.has_unbound == bool(shared)
        for worker in range(num_workers):
            assert list(window.bound_to(worker).items()) == bound[worker]
        assert list(window.unanswered.items()) == sorted(sum(bound, shared))
        assert len(window.unanswered) <= num_workers * prefetch_factor
        busy = [waiting for waiting in (shared, *bound) if waiting]
        if busy:
            waiting = luck.choice(busy)
            seq, order = waiting.pop(luck.randrange(len(waiting)))
            assert window.answer(Message(0, Kind.RESULT, seq, order))
            assert not window.answer(Message(0, Kind.RESULT, seq, order))  # nobody waits for it twice
        while window.is_ready:
            results.append(window.pop().value)
    assert results == list(range(num_orders))


def test_answers_to_orders_of_an_earlier_run_are_ignored():
    window = Window(2, 2, first_seq=10)
    window.take("a")
    assert not window.answer(Message(0, Kind.RESULT, 3, "stale"))
    assert not window.is_ready


def test_a_pin_to_nobody_is_refused():
    with pytest.raises(ConfigurationError, match=r"^an order is pinned to worker 2, but workers are 0\.\.1"):
        Window(2, 2).can_take(2)
