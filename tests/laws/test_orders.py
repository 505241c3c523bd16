"""Every order is a list of row numbers for each epoch, the same for whoever asks and in whatever pieces."""

import hashlib
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.order.orders import ListedOrder, SequentialOrder, ShuffledOrder
from headrace.engine.order.permutation import MAX_POSITIONS, Permutation
from headrace.errors import ConfigurationError, SourceError
from headrace.keys import derive_key

SEEDS, EPOCHS, SIZES = st.integers(), st.integers(0, 1000), st.integers(1, 200)


def listed(num):
    return ListedOrder("test-1", lambda seed, epoch: random.Random(f"{seed} {epoch}").sample(range(num), num), num, num)


ORDERS = [ShuffledOrder, SequentialOrder, listed]


@pytest.mark.parametrize("make", ORDERS)
@given(num=SIZES, seed=SEEDS, epoch=EPOCHS)
def test_an_epoch_holds_every_row_once_and_is_repeatable(make, num, seed, epoch):
    whole = make(num).indices(seed, epoch, np.arange(num))
    assert whole.dtype == np.int64
    assert sorted(whole.tolist()) == list(range(num)) == list(range(len(make(num))))
    again = make(num)
    for position in (num - 1, 0, num // 2):
        again.indices(seed, epoch + 1, np.array([position]))
        assert again.indices(seed, epoch, np.array([position])).tolist() == [whole[position]]


@given(SIZES, SEEDS, EPOCHS)
def test_the_shuffled_order_is_the_permutation_of_its_derived_key(num, seed, epoch):
    expected = Permutation(num, derive_key("order", seed, epoch)).forward(np.arange(num))
    assert ShuffledOrder(num).indices(seed, epoch, np.arange(num)).tolist() == expected.tolist()


@pytest.mark.parametrize("make", [ShuffledOrder, SequentialOrder])
@given(num=SIZES, seed=SEEDS, epoch=EPOCHS)
def test_a_row_is_found_where_it_stands(make, num, seed, epoch):
    order = make(num)
    positions = np.arange(num)
    assert np.array_equal(order.position_of(seed, epoch, order.indices(seed, epoch, positions)), positions)


@pytest.mark.parametrize("make", [ShuffledOrder, SequentialOrder])
def test_what_seed_and_epoch_decide_needs_no_digest(make):
    assert make(10).digest(0, 0) is None


def test_kinds_are_names_with_a_version():
    assert (ShuffledOrder(1).kind, SequentialOrder(1).kind, listed(1).kind) == ("keyed-1", "sequential-1", "test-1")


def test_each_epoch_is_listed_once_while_two_are_in_use():
    calls = []

    def list_epoch(seed, epoch):
        calls.append((seed, epoch))
        return [2, 0, 1]

    order = ListedOrder("test-1", list_epoch, 3)
    for epoch in (0, 1, 0, 1, 1, 2, 1, 2):
        order.indices(5, epoch, np.arange(3))
        order.digest(5, epoch)
    assert calls == [(5, 0), (5, 1), (5, 2)]


def test_the_digest_stands_for_the_whole_order():
    digest = ListedOrder("test-1", lambda seed, epoch: [2, 0, 1], 3).digest(0, 0)
    plain = b"".join(value.to_bytes(8, "little") for value in (2, 0, 1))
    assert digest == hashlib.blake2b(plain, digest_size=8, person=b"headrace-order").hexdigest()
    assert digest != ListedOrder("test-1", lambda seed, epoch: [2, 1, 0], 3).digest(0, 0)


@pytest.mark.parametrize(
    "values",
    [[2, 0, 2], (2, 0, 2), range(2, 5), np.array([2, 0, 2], np.int32), torch.tensor([2, 0, 2]), [np.int64(2), 0, True]],
    ids=["list", "tuple", "range", "array", "tensor", "mixed"],
)
def test_whole_numbers_of_any_kind_are_taken(values):
    found = ListedOrder("test-1", lambda seed, epoch: values, 3).indices(0, 0, np.arange(3))
    assert found.tolist() == [int(value) for value in values]
    assert found.dtype == np.int64


def test_the_samplers_own_array_is_not_kept():
    values = np.array([2, 0, 1])
    order = ListedOrder("test-1", lambda seed, epoch: values, 3)
    order.indices(0, 0, np.arange(3))
    values[:] = 9
    assert order.indices(0, 0, np.arange(3)).tolist() == [2, 0, 1]


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 1], r"^the sampler listed 2 samples for an epoch that should have 3\n  where: .*stage sampler test-1 | "),
        ([0, 1, 5], r"^the sampler listed row 5; the data set has rows 0 to 4\n  where: .*position 2"),
        ([0, -1, 1], r"^the sampler listed row -1; the data set has rows 0 to 4\n  where: .*position 1"),
        ([0, 1.5, 1], r"^the sampler listed 1\.5 \(float\), which is no row number\n  where: .*position 1"),
        ([0, "a", 1], r"^the sampler listed 'a' \(str\), which is no row number"),
        ([0, 1, 2**70], r"^the sampler listed 1180591620717411303424 \(int\), which is no row number"),
    ],
)
def test_lists_that_cannot_be_are_refused(values, message):
    with pytest.raises(SourceError, match=message):
        ListedOrder("test-1", lambda seed, epoch: values, 3, 5).indices(0, 0, np.arange(3))


def test_the_samplers_own_failure_passes_unchanged():
    def list_epoch(seed, epoch):
        raise KeyError("weights")

    with pytest.raises(KeyError, match="weights"):
        ListedOrder("test-1", list_epoch, 3).indices(0, 0, np.arange(3))


@pytest.mark.parametrize("make", ORDERS)
def test_an_order_of_nothing_is_refused(make):
    with pytest.raises(ConfigurationError, match=r"^an order of 0 positions cannot be made"):
        make(0)


def test_an_order_that_is_too_long_is_refused():
    with pytest.raises(ConfigurationError, match=r"cannot be made"):
        ShuffledOrder(MAX_POSITIONS + 1)
