"""The promises of the loader, for any data set size, batch size, ranks, tail, place to stop and layout to resume with."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.indexed import IndexedLoading
from headrace.engine.order.ledger import Ledger
from headrace.errors import ConfigurationError

sizes = st.integers(1, 60)
batch_sizes = st.integers(1, 17)
ranks = st.integers(1, 8)
seeds = st.integers(0, 2**31)


def delivered(loader):
    """(ids, is_pad) of one pass, flat."""
    ids, pads = [], []
    for _ in loader:
        ids += loader.last.sample_ids
        pads += loader.last.is_pad.tolist()
    return ids, pads


def own(loader):
    ids, pads = delivered(loader)
    return [sample_id for sample_id, is_pad in zip(ids, pads, strict=True) if not is_pad]


def make(n, g, *, tail="partial", seed=0, rank=0, world_size=1, **more):
    return hr.DataLoader(
        range(n), batch_size=g, shuffle=True, tail=tail, seed=seed, rank=rank, world_size=world_size, **more
    )


@given(n=sizes, g=batch_sizes, seed=seeds, tail=st.sampled_from(["partial", "pad"]))
def test_every_id_once_per_epoch(n, g, seed, tail):
    loader = make(n, g, seed=seed, tail=tail)
    for _ in range(2):
        assert sorted(own(loader)) == list(range(n))
        assert loader.ledger.delivered == n


@given(n=sizes, g=batch_sizes, seed=seeds)
def test_drop_delivers_whole_batches_and_lists_the_rest(n, g, seed):
    if n < g:
        with pytest.raises(ConfigurationError, match=r"^no batches: "):
            make(n, g, tail="drop")
        return
    loader = make(n, g, seed=seed, tail="drop")
    ids = own(loader)
    assert len(ids) == n // g * g
    assert len(set(ids)) == len(ids)
    assert loader.ledger.dropped == n % g


@given(n=sizes, g=batch_sizes, seed=seeds, passes=st.integers(1, 5))
def test_carry_delivers_each_epoch_once_and_in_order(n, g, seed, passes):
    loader = make(n, g, seed=seed, tail="carry")
    stream = [sample_id for _ in range(passes) for sample_id in own(loader)]
    reference = make(n, 1, seed=seed)
    num_epochs = loader.ledger.epoch + 1  # an epoch too short to end a batch has no pass of its own
    expected = [sample_id for _ in range(num_epochs) for sample_id in own(reference)]
    assert stream == expected[: num_epochs * n // g * g]


@given(n=sizes, g=batch_sizes, r=ranks, seed=seeds, tail=st.sampled_from(["partial", "pad", "drop", "carry"]))
def test_ranks_in_order_make_the_one_rank_batches(n, g, r, seed, tail):
    g = max(g, r)
    if tail == "drop" and n < g:
        return
    alone = make(n, g, seed=seed, tail=tail)
    together = [make(n, g, seed=seed, tail=tail, rank=rank, world_size=r) for rank in range(r)]
    expected = [list(alone.last.sample_ids) for _ in alone]
    parts = [[(loader.last.sample_ids, loader.last.is_pad) for _ in loader] for loader in together]
    assert {len(part) for part in parts} == {len(expected)}, "every rank makes the same number of steps"
    for step, batch in enumerate(expected):
        joined = [part[step] for part in parts]
        ids = [i for ids, pads in joined for i, is_pad in zip(ids, pads, strict=True) if tail == "pad" or not is_pad]
        assert ids == batch
    if expected:
        merged = Ledger.merge([loader.ledger for loader in together])
        merged.check()
        assert merged.order_hash == alone.ledger.order_hash
        assert merged.delivered == alone.ledger.delivered


@given(
    n=sizes,
    g=batch_sizes,
    resumed_g=batch_sizes,
    r=ranks,
    seed=seeds,
    epoch=st.integers(0, 2),
    data=st.data(),
)
def test_stop_anywhere_and_resume_with_any_batch_size_and_ranks(n, g, resumed_g, r, seed, epoch, data):
    whole = make(n, 1, seed=seed)
    whole.set_epoch(epoch)
    expected = own(whole)

    stopped = make(n, g, seed=seed)
    stopped.set_epoch(epoch)
    stop = data.draw(st.integers(0, len(stopped)))
    seen = []
    iterator = iter(stopped)
    for _ in range(stop):
        next(iterator)
        seen += stopped.last.sample_ids
    state = json.loads(json.dumps(stopped.state_dict()))
    iterator.close()

    resumed = [
        make(n, max(resumed_g, r), seed=seed + 1, rank=rank, world_size=r) for rank in range(r)
    ]  # another seed at the door: the state's stands
    steps = []
    for loader in resumed:
        loader.load_state_dict(state)
        steps.append([own_part(loader) for _ in loader])
    rest = [sample_id for parts in zip(*steps, strict=True) for part in parts for sample_id in part]
    if stop == len(stopped):  # saved at the end of an epoch: goes on with the next one
        whole.set_epoch(epoch + 1)
        assert rest == own(whole)
    else:
        assert seen + rest == expected


def own_part(loader):
    return [i for i, is_pad in zip(loader.last.sample_ids, loader.last.is_pad, strict=True) if not is_pad]


@given(n=st.integers(20, 60), seed=seeds)
def test_seeds_and_epochs_give_other_orders_and_equal_seeds_the_same(n, seed):
    loader, twin, neighbour = make(n, 8, seed=seed), make(n, 8, seed=seed), make(n, 8, seed=seed + 1)
    first, second = own(loader), own(loader)
    assert first == own(twin)
    assert first != second
    assert second != own(neighbour), "seeds are derived, never added"


@given(n=sizes, g=batch_sizes, seed=seeds, stop=st.integers(0, 20))
def test_the_state_on_a_batch_is_the_state_after_that_batch(n, g, seed, stop):
    """A wrapper that reads ahead saves the batch's own cursor, and resumes exactly."""
    loader = make(n, g, seed=seed)
    cursors = [(loader.last.cursor, list(loader.last.sample_ids)) for _ in loader]
    cursor, _ = cursors[min(stop, len(cursors) - 1)]
    resumed = make(n, g, seed=seed)
    resumed.load_state_dict(cursor)
    rest = [ids for _, ids in cursors[min(stop, len(cursors) - 1) + 1 :]]
    if rest:
        assert [list(resumed.last.sample_ids) for _ in resumed] == rest


@given(n=sizes, g=batch_sizes, seed=seeds)
def test_state_is_small_and_the_same_on_every_rank(n, g, seed):
    loaders = [make(n, max(g, 3), seed=seed, rank=rank, world_size=3, tail="pad") for rank in range(3)]
    iterators = [iter(loader) for loader in loaders]
    for iterator in iterators:
        next(iterator)
    states = [loader.state_dict() for loader in loaders]
    assert states[0] == states[1] == states[2]
    assert len(json.dumps(states[0])) < 1024


def test_two_live_iterators_are_two_epochs_and_do_not_disturb_each_other():
    loader = make(12, 5, seed=3)
    twin = make(12, 5, seed=3)
    first_epoch, second_epoch = own(twin), own(twin)
    a, b = iter(loader), iter(loader)
    seen_a, seen_b = [], []
    for _ in range(3):
        next(a)
        seen_a += loader.last.sample_ids
        next(b)
        seen_b += loader.last.sample_ids
    assert (seen_a, seen_b) == (first_epoch, second_epoch)


def test_after_a_break_the_next_pass_is_the_next_epoch_and_so_is_its_state():
    loader, twin = make(12, 5, seed=3), make(12, 5, seed=3)
    for _ in loader:
        break
    assert loader.state_dict()["consumed"] == 5
    own(twin)
    second = own(twin)
    iterator = iter(loader)
    assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (1, 0)
    ids = []
    for _ in iterator:
        ids += loader.last.sample_ids
    assert ids == second


def test_ledger_hash_tells_another_order_from_the_same():
    a, b, c = make(30, 7, seed=1), make(30, 4, seed=1), make(30, 7, seed=2)
    for loader in (a, b, c):
        own(loader)
    assert a.ledger.order_hash == b.ledger.order_hash != c.ledger.order_hash
    assert a.ledger.id_hash == c.ledger.id_hash or a.ledger.epoch != c.ledger.epoch


def test_positions_follow_the_order():
    loader = make(10, 4, seed=5)
    positions = np.concatenate([loader.last.positions for _ in loader])
    assert positions.tolist() == list(range(10))


def test_what_a_resume_with_a_larger_batch_passes_over_is_counted():
    """Under `drop` the rest of an epoch may be too short for one larger batch; it is not lost without a word."""
    stopped = make(10, 2, tail="drop", seed=1)
    iterator = iter(stopped)
    for _ in range(4):
        next(iterator)
    resumed = make(10, 4, tail="drop")
    resumed.load_state_dict(stopped.state_dict())
    next(iter(resumed))
    assert (resumed.ledger.epoch, resumed.ledger.passed_over) == (1, 2)
    assert "2 of the epoch before passed over" in str(resumed.ledger)


def test_the_ledger_says_what_was_handed_over_even_where_that_is_not_the_order(monkeypatch):
    planned, actual = make(30, 7, seed=1), make(30, 7, seed=1)
    own(planned)
    honest = IndexedLoading.indices

    def with_two_rows_swapped(self, *arguments):
        rows = honest(self, *arguments)
        rows[[3, 20]] = rows[[20, 3]]
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(IndexedLoading, "indices", with_two_rows_swapped)
        seen = own(actual)
    again = Ledger(0, 30, epoch=0)
    again.record_whole(0, np.arange(30), np.array(seen))
    assert actual.ledger.order_hash == again.order_hash != planned.ledger.order_hash
    assert actual.ledger.id_hash == again.id_hash == planned.ledger.id_hash
