"""Steps planned in blocks are the steps planned one by one; a ledger that hashes them together says the same."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.order import row_hash
from headrace.engine.order.batches import BatchPlan, ListedBatches
from headrace.engine.order.blocks import BLOCK_STEPS, blocks
from headrace.engine.order.ledger import Ledger
from headrace.engine.order.orders import ShuffledOrder


@st.composite
def passes(draw):
    """A pass of any plan, begun anywhere."""
    world_size = draw(st.integers(1, 4))
    rank = draw(st.integers(0, world_size - 1))
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=9))
        return ListedBatches(lambda _epoch: sizes, rank=rank, world_size=world_size).begin(draw(st.integers(0, 2)), 0)
    num_positions = draw(st.integers(1, 60))
    plan = BatchPlan(
        num_positions,
        draw(st.integers(world_size, 20)),
        rank=rank,
        world_size=world_size,
        tail=draw(st.sampled_from(["drop", "partial", "pad", "carry"])),
    )
    return plan.begin(draw(st.integers(0, 2)), draw(st.integers(0, num_positions)))


def steps_of(one_pass, block_rows):
    for block in blocks(one_pass, block_rows):
        for step, part in block:
            yield step, block.rows.epochs[part], block.rows.positions[part], block.rows.is_pad[part]


@given(passes(), st.integers(1, 40))
def test_blocks_hold_the_parts_of_the_pass(one_pass, block_rows):
    found = list(steps_of(one_pass, block_rows))
    assert [step for step, *_ in found] == list(range(one_pass.num_batches))
    for step, epochs, positions, is_pad in found:
        part = one_pass.part(step)
        assert epochs.tolist() == part.epochs.tolist()
        assert positions.tolist() == part.positions.tolist()
        assert is_pad.tolist() == part.is_pad.tolist()


def test_blocks_are_not_to_be_written():
    (block, *_) = blocks(BatchPlan(10, 4).begin(0, 0))
    with pytest.raises(ValueError, match="read-only"):
        block.rows.positions[0] = 1


def test_small_batches_do_not_make_the_first_one_wait():
    one_pass = BatchPlan(10**12, 8, rank=1, world_size=8).begin(0, 0)
    assert len(next(blocks(one_pass)).edges) - 1 == BLOCK_STEPS


def test_blocks_are_made_one_by_one():
    one_pass = BatchPlan(10**12, 64).begin(0, 10**11)
    assert next(blocks(one_pass)).rows.positions[0] == 10**11


@given(passes(), st.integers(1, 40), st.integers(1, 30))
def test_parts_recorded_whole_hash_as_parts_recorded_row_by_row(one_pass, block_rows, hashed_rows):
    order = ShuffledOrder(one_pass.num_positions)
    by_row, whole, moved = (Ledger.of(one_pass) for _ in range(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_hash, "BLOCK", hashed_rows)
        for _, epochs, positions, is_pad in steps_of(one_pass, block_rows):
            indices = np.concatenate(
                [order.indices(7, int(epochs[i]), positions[i : i + 1]) for i in range(len(epochs))]
            )
            by_row.record(epochs, positions, indices, is_pad)
            for ledger in (whole, moved):
                if len(set(epochs.tolist())) == 1 and not is_pad.any():
                    ledger.record_whole(int(epochs[0]), positions, indices)
                else:
                    ledger.record(epochs, positions, indices, is_pad)
            moved = pickle.loads(pickle.dumps(moved))  # as ranks do that send their ledgers to be merged
    assert whole.as_dict() == by_row.as_dict() == moved.as_dict() == deepcopy(whole).as_dict()
