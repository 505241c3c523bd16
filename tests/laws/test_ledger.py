"""What was planned is delivered, skipped or dropped; the hashes of ranks add up to the hash of the whole."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.order import kernels
from headrace.engine.order.batches import BatchPlan, Tail
from headrace.engine.order.ledger import Ledger
from headrace.engine.order.permutation import Permutation
from headrace.engine.order.row_hash import BLOCK
from headrace.errors import ConfigurationError, LedgerError


def rows(num, start=0):
    """(epochs, positions, indices, is_pad) of `num` ordinary rows."""
    positions = np.arange(start, start + num)
    return np.zeros(num, np.int64), positions, positions * 7 % 1000, np.zeros(num, bool)


def kept(num):
    ledger = Ledger(0, num, epoch=0)
    ledger.record(*rows(num))
    return ledger


def run_rank(plan, order, *, refuses=lambda index: False, replaces=False, point=(0, 0), ledger=None):
    """Plays a loader on one rank: records every part of a pass, refusing some samples."""
    one_pass = plan.begin(*point)
    ledger = ledger or Ledger.of(one_pass)
    for step in range(one_pass.num_batches):
        part = one_pass.part(step)
        indices = order.forward(part.positions)
        refused = np.array([refuses(index) for index in indices.tolist()], dtype=bool)
        ledger.record(
            part.epochs,
            part.positions,
            indices,
            part.is_pad,
            delivered=~refused,
            replaced=refused if replaces else None,
            num_skipped=sum(bool(bad and not pad) for bad, pad in zip(refused, part.is_pad, strict=True)),
        )
    return ledger


@st.composite
def layouts(draw):
    """The same epoch cut in one way: (batch size, ranks)."""
    world_size = draw(st.integers(1, 8))
    return draw(st.integers(world_size, 25)), world_size


def all_ranks(num, layout, tail, **kwargs):
    size, world_size = layout
    order = Permutation(num, key=9)
    return [run_rank(BatchPlan(num, size, rank, world_size, tail), order, **kwargs) for rank in range(world_size)]


@given(st.integers(1, 80), layouts(), st.sampled_from(["drop", "partial", "pad"]), st.integers(1, 9), st.booleans())
def test_the_equation_holds_over_all_ranks(num, layout, tail, every, replaces):
    def refuses(index):
        return index % every == 0

    ledgers = all_ranks(num, layout, tail, refuses=refuses, replaces=replaces)
    for ledger in ledgers:
        ledger.check()
    whole = Ledger.merge(ledgers)
    whole.check()
    handed_over = num - whole.dropped
    indices = Permutation(num, key=9).forward(np.arange(handed_over)).tolist()
    assert whole.skipped == sum(map(refuses, indices))
    assert whole.delivered == handed_over - whole.skipped
    assert whole.planned == handed_over
    assert whole.replaced == (whole.skipped if replaces else 0)
    assert whole.delivered + whole.skipped + whole.dropped == num


@given(st.integers(1, 80), layouts(), layouts(), st.sampled_from(["partial", "pad"]))
def test_hashes_do_not_depend_on_ranks_and_batch_size(num, layout, other, tail):
    mine, theirs = Ledger.merge(all_ranks(num, layout, tail)), Ledger.merge(all_ranks(num, other, "partial"))
    assert mine.order_hash == theirs.order_hash
    assert mine.id_hash == theirs.id_hash


@given(st.integers(1, 80), layouts(), st.sampled_from(list(Tail)))
def test_padded_counts_the_flagged_repeats(num, layout, tail):
    size, world_size = layout
    whole = Ledger.merge(all_ranks(num, layout, tail))
    parts = []
    for rank in range(world_size):
        one_pass = BatchPlan(num, size, rank, world_size, tail).begin(0, 0)
        parts += [one_pass.part(step).is_pad for step in range(one_pass.num_batches)]
    assert whole.padded == sum(int(is_pad.sum()) for is_pad in parts)


def test_a_resumed_pass_adds_up_to_the_unbroken_one():
    order = Permutation(100, key=9)
    plan = BatchPlan(100, 10)
    whole = run_rank(plan, order)
    first = Ledger.of(plan.begin(0, 0))
    for step in range(4):
        part = plan.begin(0, 0).part(step)
        first.record(part.epochs, part.positions, order.forward(part.positions), part.is_pad)
    resumed = run_rank(plan, order, point=(0, 40), ledger=first)
    assert resumed.as_dict() == whole.as_dict()


@given(st.integers(100, 3 * BLOCK))
def test_hashes_do_not_depend_on_when_they_are_read(size):
    num = 3 * BLOCK
    ledger = Ledger(0, num, epoch=0)
    for start in range(0, num, size):
        epochs, positions, indices, is_pad = rows(min(size, num - start), start)
        ledger.record(epochs, positions, indices, is_pad)
        if start % 2:
            assert ledger.order_hash
    assert ledger.as_dict() == kept(num).as_dict()


@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_order_hash_sees_every_single_change(column):
    changed = [array.copy() for array in rows(50)]
    changed[column][17] += 1
    ledger = Ledger(0, 50, epoch=0)
    ledger.record(*changed)
    assert ledger.order_hash != kept(50).order_hash
    assert (ledger.id_hash == kept(50).id_hash) == (column == 1)  # a position is no part of a multiset of ids


def test_two_samples_that_change_places_change_the_order_and_not_the_ids():
    epochs, positions, indices, is_pad = rows(50)
    indices[[3, 30]] = indices[[30, 3]]
    ledger = Ledger(0, 50, epoch=0)
    ledger.record(epochs, positions, indices, is_pad)
    assert ledger.order_hash != kept(50).order_hash
    assert ledger.id_hash == kept(50).id_hash


def test_a_sample_that_comes_twice_is_seen():
    ledger = kept(50)
    ledger.record(*rows(50))
    assert ledger.id_hash != kept(50).id_hash
    assert ledger.id_hash != Ledger(0, 50, epoch=0).id_hash


def test_hashes_of_many_samples_are_all_different():
    hashes = set()
    for epoch, position, index in np.ndindex(8, 8, 8):
        ledger = Ledger(0, 1, epoch=0)
        ledger.record(*(np.array([value]) for value in (epoch, position, index)), np.array([False]))
        hashes.update((ledger.order_hash[:16], ledger.order_hash[16:]))
    assert len(hashes) == 2 * 8**3


GOLDEN_RATIO = 0x9E3779B97F4A7C15


def plain_hashes(table):
    """(order hash, id hash) of rows (epoch, position, index), in plain integers."""
    sums = [0, 0, 0, 0]
    for epoch, position, index in table:
        start = plain_mix64((int.from_bytes(b"ids", "big") + epoch * GOLDEN_RATIO) % 2**64)
        by_id = plain_mix64((start + index * GOLDEN_RATIO) % 2**64)
        by_order = plain_mix64((by_id + position) % 2**64)
        row = plain_stir64(by_order), by_order, plain_stir64(by_id), by_id
        sums = [(total + half) % 2**64 for total, half in zip(sums, row, strict=True)]
    return f"{sums[0]:016x}{sums[1]:016x}", f"{sums[2]:016x}{sums[3]:016x}"


def plain_mix64(value):
    return plain_stir64((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64)


def plain_stir64(value):
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


@given(st.lists(st.tuples(*[st.integers(0, 2**63 - 1)] * 3), min_size=1, max_size=20))
def test_hashes_equal_their_plain_twin(table):
    epochs, positions, indices = np.array(table, dtype=np.int64).T
    ledger = Ledger(0, len(table), epoch=0)
    ledger.record(epochs, positions, indices, np.zeros(len(table), bool))
    assert (ledger.order_hash, ledger.id_hash) == plain_hashes(table)


@pytest.mark.parametrize("by_kernel", [True, False])
def test_hashes_are_frozen(by_kernel, monkeypatch):
    # A ledger of today is compared with one kept long ago, so these values never change.
    monkeypatch.setattr(kernels, "enabled", by_kernel)
    ledger = kept(1000)
    assert ledger.order_hash == "849f49381f03da0de3564416d4fabbb1"
    assert ledger.id_hash == "ee79463e7656ea5952ab532ab16cefeb"


@given(st.integers(1, 40), st.integers(0, 39), st.integers(0, 2**48), st.booleans())
def test_hashes_are_of_what_was_handed_over_and_not_of_what_was_planned(num, place, other, reads):
    # One row number differs from the order's, in one batch of many.
    order, one_pass = Permutation(400, key=9), BatchPlan(400, num).begin(0, 0)
    planned, actual = Ledger.of(one_pass), Ledger.of(one_pass)
    handed_over = []
    for step in range(one_pass.num_batches):
        part = one_pass.part(step)
        indices = order.forward(part.positions)
        planned.record_whole(0, part.positions, indices)
        if step == 3:
            indices = indices.copy()
            indices[place % len(indices)] = other
        actual.record_whole(0, part.positions, indices)
        handed_over += [(0, *row) for row in zip(part.positions.tolist(), indices.tolist(), strict=True)]
        assert not reads or actual.id_hash
    assert (actual.order_hash, actual.id_hash) == plain_hashes(handed_over)
    is_same = handed_over == [(0, p, i) for p, i in enumerate(order.forward(np.arange(400)).tolist())]
    assert (actual.order_hash == planned.order_hash) == (actual.id_hash == planned.id_hash) == is_same


def test_pickled_between_ranks_nothing_is_lost():
    assert pickle.loads(pickle.dumps(kept(50))).as_dict() == kept(50).as_dict()


def test_the_line_for_people():
    ledger = Ledger(150_000, 200_000, epoch=3, dropped=16)
    epochs, positions, indices, is_pad = rows(49_984)
    delivered = np.ones(49_984, bool)
    delivered[[5, 6]] = False
    ledger.record(epochs, positions, indices, is_pad, delivered=delivered, num_skipped=2)
    ledger.check(complete=True)
    assert str(ledger) == (
        "epoch 3: 50,000 planned = 49,982 delivered + 2 skipped + 16 dropped; 0 replaced, 0 padded; "
        f"order {ledger.order_hash[:8]}"
    )
    ledger.rank, ledger.world_size = 1, 4
    assert str(ledger).startswith("epoch 3, rank 1 of 4: 49,984 planned = 49,982 delivered + 2 skipped; 0 replaced")


# ------------------------------------------------------------------------------------------------------ imbalance


def test_a_lost_sample_is_found():
    ledger = kept(10)
    epochs, positions, indices, is_pad = rows(5, 10)
    ledger.record(epochs, positions, indices, is_pad, delivered=np.array([True] * 4 + [False]))
    message = (
        r"^the ledger does not balance: 15 planned, but 14 delivered \+ 0 skipped = 14\n  where: epoch 0, rank 0|rank"
    )
    with pytest.raises(LedgerError, match=message):
        ledger.check()


def test_more_replacements_than_refusals_are_found():
    ledger = Ledger(0, 2, epoch=0)
    ledger.record(*rows(2), replaced=np.array([True, False]))
    with pytest.raises(LedgerError, match=r"^the ledger does not balance: 1 replaced, but only 0 skipped"):
        ledger.check()


def test_a_pass_that_is_not_over_is_found_when_asked():
    ledger = kept(10)
    ledger.pass_stop = 12
    ledger.check()
    with pytest.raises(LedgerError, match=r"(?s)^the ledger does not cover its pass: 12 positions, but 10 planned"):
        ledger.check(complete=True)
    with pytest.raises(LedgerError, match="the pass is not over"):
        Ledger.merge([ledger]).check()
    ledger.pass_stop = None
    Ledger.merge([ledger]).check()


def test_one_rank_of_several_cannot_tell_whether_a_pass_is_complete():
    with pytest.raises(ConfigurationError, match=r"^rank 1 of 2 alone cannot tell whether a pass is complete"):
        Ledger(0, 10, 1, 2, epoch=0).check(complete=True)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([0, 1], r"^the ledgers of 3 ranks do not merge: rank 2 is missing$"),
        ([0, 1, 1], r"^the ledgers of 3 ranks do not merge: rank 2 is missing, rank 1 is there twice$"),
        ([0, 1, 2, 3], r"^the ledgers of 3 ranks do not merge: rank 3 is none of them$"),
        ([0, 1, 2, None], r"^the ledgers of 3 ranks do not merge: rank None is none of them$"),
        ([], r"^there are no ledgers to merge$"),
    ],
)
def test_ranks_that_do_not_make_a_whole_are_refused(ranks, message):
    with pytest.raises(LedgerError, match=message):
        Ledger.merge(Ledger(0, 10, rank, 3, epoch=0) for rank in ranks)


@pytest.mark.parametrize(
    "other", [{"epoch": 1}, {"pass_start": 5}, {"pass_stop": 11}, {"world_size": 3}, {"dropped": 1}]
)
def test_ledgers_of_different_passes_are_refused(other):
    arguments = {"pass_start": 0, "pass_stop": 10, "rank": 1, "world_size": 2, "epoch": 0, **other}
    with pytest.raises(LedgerError, match=r"^ledgers of different passes cannot be merged: rank 0 has epoch 0, "):
        Ledger.merge([Ledger(0, 10, 0, 2, epoch=0), Ledger(**arguments)])
