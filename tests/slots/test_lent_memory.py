"""A batch that is made where it will be sent from: the same bytes as one that is copied there, and no copy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slot_acts import Pair, pattern

import headrace as hr
from headrace.engine.batch_memory import batch_memory, for_the_result, lent_by
from headrace.engine.run.slots_memory import FREE
from headrace.errors import ConfigurationError

LARGE = 1 << 18


def make(pair, sizes, number, is_made_there):
    """A result of several fields, some of them in memory that the sender lends."""
    with lent_by(pair.sender.lend), for_the_result():
        fields = {}
        for place, (size, there) in enumerate(zip(sizes, is_made_there, strict=True)):
            memory = batch_memory((size,), np.uint8) if there else np.empty(size, np.uint8)
            memory[:] = pattern(number + place, size)
            fields[place] = torch.from_numpy(memory) if place % 2 else memory
        return fields


def is_right(result, sizes, number):
    return all(
        np.array_equal(np.asarray(result[place]), pattern(number + place, size)) for place, size in enumerate(sizes)
    )


SIZES = st.lists(st.sampled_from([0, 100, 20_000, LARGE, 3 * LARGE + 5]), min_size=1, max_size=4)


@given(data=st.data())
def test_results_are_the_same_wherever_they_are_made_and_whoever_is_kept(data):
    pair = Pair(max_in_flight=2)
    try:
        kept = []
        for number in range(0, 100, 10):
            sizes = data.draw(SIZES)
            is_made_there = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
            made = make(pair, sizes, number, is_made_there)
            if data.draw(st.sampled_from([False] * 4 + [True])):
                pair.sender.take_back()  # the order failed after all
                continue
            kept.append((pair.travel(made), sizes, number))
            del made
            if data.draw(st.booleans()):
                del kept[0]
            for one in kept:
                assert is_right(*one)
        del kept
    finally:
        pair.close()


def test_what_is_made_there_is_not_copied(make_pair):
    pair = make_pair()
    for number in range(3):
        made = make(pair, [LARGE, LARGE], number, [True, True])
        arrived = pair.travel(made)
        assert pair.num_in_pipe < LARGE
        made[0][7] ^= 255  # one memory: what the worker does there now, the consumer sees
        if number:  # of the first one it was not known how large it would be
            assert int(arrived[0][7]) == int(made[0][7])
            assert (arrived[1].numpy() == np.asarray(made[1])).all()


def test_nothing_is_lent_for_what_the_process_may_keep(make_pair):
    pair = make_pair()
    with lent_by(pair.sender.lend):
        mine = batch_memory((4 * LARGE,), np.uint8)
    mine[:] = 1
    assert pair.sender._lent.size == 0
    for number in range(4):
        pair.travel(make(pair, [LARGE], number, [True]))
    assert (mine == 1).all()


def test_the_slot_of_a_failed_order_is_free_again(make_pair):
    pair = make_pair()
    for number in range(50):
        make(pair, [LARGE], number, [True])
        pair.sender.take_back()
    words = pair.sender._section.words
    assert all(word == FREE for word in words)
    assert len(pair.sender._shelf._slots) == 1


def test_the_limit_holds_for_what_is_made_there(make_pair):
    pair = make_pair(memory_limit=3 * LARGE)
    assert is_right(pair.travel(make(pair, [LARGE // 2], 0, [True])), [LARGE // 2], 0)
    made = make(pair, [2 * LARGE], 0, [True])
    with pytest.raises(ConfigurationError, match=r"^memory_limit=786,432 bytes does not hold the batches in flight"):
        pair.travel(made)


@pytest.mark.parametrize("layout", [{"multiprocessing_context": "fork"}, {"multiprocessing_context": "spawn"}])
@pytest.mark.parametrize("runner", ["processes", "host"])
def test_batches_of_workers_are_made_there_and_equal(layout, runner):
    data = np.arange(40 * 96 * 64, dtype=np.int32).reshape(40, 96, 64)
    for dataset in (data, hr.arrays(x=data, y=np.arange(40)), hr.arrays(x=data).map(double)):
        plain = list(hr.DataLoader(dataset, batch_size=8, shuffle=True, seed=2))
        loader = hr.DataLoader(dataset, batch_size=8, shuffle=True, seed=2, num_workers=2, runner=runner, **layout)
        for batch, twin in zip(loader, plain, strict=True):
            if isinstance(batch, torch.Tensor):
                batch, twin = {"x": batch}, {"x": twin}
            assert batch.keys() == twin.keys()
            assert all(torch.equal(batch[name], twin[name]) and batch[name].dtype == twin[name].dtype for name in twin)


def double(sample):
    return {"x": sample["x"] * 2}
