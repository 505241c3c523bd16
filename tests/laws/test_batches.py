"""Every position is handed over once per epoch, whatever the batch size, the ranks and the tail, and wherever one stops."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.order.batches import BatchPlan, ListedBatches, Tail
from headrace.errors import ConfigurationError, SourceError, StateMismatch

TAILS = st.sampled_from(list(Tail))


@st.composite
def plans(draw, num_positions=None):
    """Plans of every kind, with all numbers small enough to meet each other."""
    world_size = draw(st.integers(1, 8))
    return BatchPlan(
        num_positions=draw(st.integers(1, 60)) if num_positions is None else num_positions,
        batch_size=draw(st.integers(world_size, 30)),
        rank=draw(st.integers(0, world_size - 1)),
        world_size=world_size,
        tail=draw(TAILS),
    )


@st.composite
def plans_and_points(draw):
    """A plan, and a point (epoch, consumed) at which it may begin."""
    plan = draw(plans())
    return plan, draw(st.integers(0, 3)), draw(st.integers(0, plan.num_positions))


def rows(part):
    """A part as a list of (epoch, position, is_pad)."""
    return list(zip(part.epochs.tolist(), part.positions.tolist(), part.is_pad.tolist(), strict=True))


def global_batches(one_pass):
    return [rows(one_pass.global_part(step)) for step in range(one_pass.num_batches)]


def own_rows(batches):
    """(epoch, position) of all rows that are no flagged repeats, in order."""
    return [(epoch, position) for batch in batches for epoch, position, is_pad in batch if not is_pad]


def on_rank(plan, rank):
    return BatchPlan(plan.num_positions, plan.batch_size, rank, plan.world_size, plan.tail)


def oracle(plan, epoch, consumed):
    """The simplest program that forms a pass: lists, appending, slicing. Returns (epoch, batches, dropped, carried)."""
    num, size = plan.num_positions, plan.batch_size
    rest = [(epoch, position) for position in range(consumed, num)]
    if plan.tail is Tail.CARRY:
        while len(rest) < size:
            epoch += 1
            rest += [(epoch, position) for position in range(num)]
    elif not rest or (plan.tail is Tail.DROP and consumed and len(rest) < size):
        epoch += 1
        rest = [(epoch, position) for position in range(num)]
    batches = []
    while len(rest) >= size:
        batches.append([(*row, False) for row in rest[:size]])
        rest = rest[size:]
    if rest and plan.tail in {Tail.PARTIAL, Tail.PAD}:
        batches.append([(*row, False) for row in rest])
        starts_again = itertools.cycle(range(num))
        while plan.tail is Tail.PAD and len(batches[-1]) < size:
            batches[-1].append((epoch, next(starts_again), True))
        rest = []
    positions = [position for _, position in rest]
    return (epoch, batches, *((positions, []) if plan.tail is Tail.DROP else ([], positions)))


@given(plans_and_points())
def test_a_pass_is_what_the_list_program_makes(plan_and_point):
    plan, epoch, consumed = plan_and_point
    expected_epoch, batches, dropped, carried = oracle(plan, epoch, consumed)
    one_pass = plan.begin(epoch, consumed)
    assert one_pass.epoch == expected_epoch
    assert global_batches(one_pass) == batches
    assert list(one_pass.dropped) == dropped
    assert one_pass.num_dropped == len(dropped)
    assert one_pass.num_carried == len(carried)


@given(plans_and_points())
def test_ranks_in_order_are_the_batch_and_all_make_the_same_steps(plan_and_point):
    plan, epoch, consumed = plan_and_point
    passes = [on_rank(plan, rank).begin(epoch, consumed) for rank in range(plan.world_size)]
    assert len({(each.epoch, each.num_batches, each.start, each.stop, each.num_dropped) for each in passes}) == 1
    for step, batch in enumerate(global_batches(passes[0])):
        parts = [rows(each.part(step)) for each in passes]
        assert all(parts)
        joined = [row for part in parts for row in part]
        if plan.tail is Tail.PARTIAL and len(batch) < plan.world_size:
            first = (*batch[0][:2], True)
            assert sorted(map(len, parts)) == [1] * plan.world_size
            assert [row for row in joined if row[2]] == [first] * (plan.world_size - len(batch))
            joined = [row for row in joined if not row[2]]
        assert joined == batch
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@given(plans(), st.integers(0, 3))
def test_an_epoch_from_its_start_hands_over_or_drops_every_position_once(plan, epoch):
    one_pass = plan.begin(epoch, 0)
    if plan.tail is Tail.CARRY:
        return  # see the next law
    handed_over = [position for _, position in own_rows(global_batches(one_pass))]
    assert handed_over + list(one_pass.dropped) == list(range(plan.num_positions))
    assert one_pass.num_batches == plan.num_batches_full
    assert one_pass.epoch == epoch


@given(plans(), st.integers(1, 6))
def test_passes_in_a_row_hand_over_the_stream_without_gap_or_repeat(plan, num_passes):
    point, handed_over, dropped = (0, 0), [], []
    for _ in range(num_passes):
        one_pass = plan.begin(*point)
        handed_over += own_rows(global_batches(one_pass))
        dropped += [(one_pass.epoch, position) for position in one_pass.dropped]
        point = one_pass.cursor_after(one_pass.num_batches - 1) if one_pass.num_batches else (one_pass.epoch + 1, 0)
    num_seen = len(handed_over) + len(dropped)
    stream = [divmod(absolute, plan.num_positions) for absolute in range(num_seen)]
    assert sorted(handed_over + dropped) == stream
    assert handed_over == sorted(handed_over)
    if plan.tail is Tail.CARRY:
        assert not dropped
        assert all(each == plan.batch_size for each in map(len, global_batches(one_pass)))


@given(plans(), st.integers(1, 5))
def test_a_pass_of_carry_differs_from_a_full_one_by_at_most_one_batch(plan, num_passes):
    plan = BatchPlan(plan.num_positions, plan.batch_size, tail="carry")
    point = (0, 0)
    for _ in range(num_passes):
        one_pass = plan.begin(*point)
        assert one_pass.num_batches - plan.num_batches_full in {0, 1}
        point = one_pass.cursor_after(one_pass.num_batches - 1)


@given(plans(), st.data())
def test_after_a_stop_any_other_plan_hands_over_exactly_the_remainder(plan, data):
    one_pass = plan.begin(data.draw(st.integers(0, 2)), 0)
    if not one_pass.num_batches:
        return
    step = data.draw(st.integers(0, one_pass.num_batches - 1))
    epoch, consumed = one_pass.cursor_after(step)
    seen = own_rows(global_batches(one_pass)[: step + 1])
    assert seen[-1] == (epoch, consumed - 1)
    remainder = [(epoch, position) for position in range(consumed, plan.num_positions)]

    other = data.draw(plans(plan.num_positions))
    rest = other.begin(epoch, consumed)
    found = own_rows(global_batches(rest)) + [(rest.epoch, position) for position in rest.dropped]
    if rest.epoch > epoch and other.tail is not Tail.CARRY:
        assert len(remainder) < other.batch_size
        assert rest.num_passed_over == len(remainder)
        assert found == [(rest.epoch, position) for position in range(plan.num_positions)]
    else:
        assert rest.num_passed_over == 0
        assert found[: len(remainder)] == remainder[: len(found)]


@given(plans_and_points())
def test_a_pass_goes_on_after_each_of_its_steps_as_if_it_had_not_stopped(plan_and_point):
    plan, epoch, consumed = plan_and_point
    whole = plan.begin(epoch, consumed)
    for step in range(whole.num_batches - 1):
        rest = plan.begin(*whole.cursor_after(step))
        assert global_batches(rest) == global_batches(whole)[step + 1 :]
        assert (rest.epoch, rest.stop, rest.dropped) == (whole.epoch, whole.stop, whole.dropped)


@given(plans_and_points())
def test_a_pass_accounts_for_what_it_hands_over_and_drops(plan_and_point):
    plan, epoch, consumed = plan_and_point
    one_pass = plan.begin(epoch, consumed)
    assert one_pass.stop - one_pass.start == len(own_rows(global_batches(one_pass))) + one_pass.num_dropped
    assert one_pass.begins_at == divmod(one_pass.start, plan.num_positions)


def test_the_end_of_drop_begins_the_next_epoch_but_smaller_batches_still_find_the_rest():
    point = BatchPlan(10, 4, tail="drop").begin(0, 0).cursor_after(1)
    assert point == (0, 8)
    again = BatchPlan(10, 4, tail="drop").begin(*point)
    assert (again.epoch, again.start, again.num_passed_over) == (1, 10, 2)
    smaller = BatchPlan(10, 2, tail="drop").begin(*point)
    assert own_rows(global_batches(smaller)) == [(0, 8), (0, 9)]


def test_an_epoch_shorter_than_a_batch():
    dropping = BatchPlan(3, 8, tail="drop").begin(0, 0)
    assert (dropping.epoch, dropping.num_batches, list(dropping.dropped)) == (0, 0, [0, 1, 2])
    padding = BatchPlan(3, 8, tail="pad").begin(0, 0).global_part(0)
    assert padding.positions.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert padding.is_pad.tolist() == [False] * 3 + [True] * 5
    carrying = BatchPlan(3, 8, tail="carry").begin(0, 0)
    assert (carrying.epoch, carrying.num_batches, carrying.num_carried) == (2, 1, 1)
    assert carrying.global_part(0).epochs.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_the_farthest_epoch_of_the_largest_data_set_does_not_overflow():
    num, epoch = 2**48, 10**9
    one_pass = BatchPlan(num, 1024, rank=3, world_size=4).begin(epoch, num - 1000)
    part = one_pass.part(0)
    assert set(part.epochs.tolist()) == {epoch}
    assert part.positions.tolist() == list(range(num - 250, num))
    assert one_pass.cursor_after(0) == (epoch, num)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 8), st.data())
def test_listed_batches_keep_their_bounds(sizes, world_size, data):
    step = data.draw(st.integers(0, len(sizes) - 1))
    consumed = sum(sizes[:step])
    passes = [ListedBatches(lambda epoch: sizes, rank, world_size).begin(4, consumed) for rank in range(world_size)]
    expected = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])[step:]
    assert len(expected) == passes[0].num_batches
    for here, batch in enumerate(expected):
        assert passes[0].global_part(here).positions.tolist() == batch.tolist()
        parts = [rows(each.part(here)) for each in passes]
        assert all(parts)
        joined = [row for part in parts for row in part]
        assert [(epoch, position) for epoch, position, is_pad in joined if not is_pad] == [(4, each) for each in batch]
        assert passes[0].cursor_after(here) == (4, batch[-1] + 1)


@given(plans())
def test_listed_batches_of_one_size_are_partial_batches(plan):
    plan = BatchPlan(plan.num_positions, plan.batch_size, plan.rank, plan.world_size, "partial")
    one_pass = plan.begin(2, 0)
    sizes = [len(batch) for batch in global_batches(one_pass)]
    listed = ListedBatches(lambda epoch: sizes, plan.rank, plan.world_size).begin(2, 0)
    assert global_batches(listed) == global_batches(one_pass)
    for step in range(one_pass.num_batches):
        assert rows(listed.part(step)) == rows(one_pass.part(step))
        assert listed.cursor_after(step) == one_pass.cursor_after(step)


def test_listed_batches_may_differ_from_epoch_to_epoch():
    batches = ListedBatches(lambda epoch: [[4, 2], [3, 3, 1]][epoch])
    after = batches.begin(0, 6)
    assert after.epoch == 1
    assert own_rows(global_batches(after)) == [(1, position) for position in range(7)]


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_positions": 0}, r"^an epoch of 0 positions has no batch"),
        ({"batch_size": 0}, r"^batch_size is 0: it must be 1 or more"),
        ({"batch_size": 2.5}, r"^batch_size is 2.5: it must be a whole number"),
        ({"world_size": 0}, r"^world_size is 0: it must be 1 or more"),
        ({"rank": 2, "world_size": 2}, r"^rank is 2: with world_size 2 it must be from 0 to 1"),
        ({"rank": -1}, r"^rank is -1"),
        ({"batch_size": 3, "world_size": 4}, r"(?s)^batch_size 3 is less than world_size 4.*do: +batch_size=4 "),
        ({"tail": "padd"}, r"(?s)^unknown tail 'padd'; did you mean 'pad'\?"),
    ],
)
def test_impossible_plans_are_refused(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        BatchPlan(**{"num_positions": 10, "batch_size": 4, **arguments})


@pytest.mark.parametrize(("epoch", "consumed"), [(-1, 0), (0, -1), (0, 11)])
def test_points_that_do_not_exist_are_refused(epoch, consumed):
    with pytest.raises(StateMismatch, match=r"^the state (stands|says)"):
        BatchPlan(10, 4).begin(epoch, consumed)
    with pytest.raises(StateMismatch, match=r"^the state (stands|says)"):
        ListedBatches(lambda epoch: [5, 5]).begin(epoch, consumed)


@pytest.mark.parametrize("step", [-1, 3])
def test_steps_that_do_not_exist_are_refused(step):
    one_pass = BatchPlan(10, 4).begin(0, 0)
    for method in (one_pass.part, one_pass.global_part, one_pass.cursor_after):
        with pytest.raises(IndexError, match=rf"^step {step} of a pass with 3 steps$"):
            method(step)


def test_a_point_inside_a_listed_batch_is_refused():
    message = r"^the state stands at position 6 of epoch 0, inside a batch: here a batch begins at 5 and the next at 8"
    with pytest.raises(StateMismatch, match=message):
        ListedBatches(lambda epoch: [5, 3, 2]).begin(0, 6)


def test_impossible_lists_of_batches_are_refused():
    with pytest.raises(SourceError, match=r"^the batch sampler listed no batches for epoch 0"):
        ListedBatches(lambda epoch: []).begin(0, 0)
    with pytest.raises(SourceError, match=r"^the batch sampler listed an empty batch: batch 1 of 3"):
        ListedBatches(lambda epoch: [4, 0, 4]).begin(0, 0)


def test_plain_numbers_of_numpy_are_taken():
    plan = BatchPlan(np.int64(10), np.int32(4), np.int64(0), np.int64(1))
    assert type(plan.num_positions) is int
    assert plan == BatchPlan(10, 4)
