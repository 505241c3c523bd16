"""What decides an order, found from the outside."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from headrace.doctor.subject.samplers import chain, decider, draws, generator_states, rank_place, set_epoch_holders

DATA = TensorDataset(torch.zeros(20, 1))


class Fixed(Sampler):
    def __init__(self, order):
        self.order = order

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)


class Once(Fixed):
    def __init__(self, size):
        super().__init__(random.sample(range(size), size))


class Indirect(Fixed):
    def __iter__(self):
        return iter(self.mixed())

    def mixed(self):
        return [self.order[i] for i in torch.randperm(len(self.order)).tolist()]


class Nested(Fixed):
    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        return iter(self.sampler)


def test_the_chain_leaves_out_the_placeholder_beside_a_batch_sampler():
    own = BatchSampler(SequentialSampler(DATA), 5, drop_last=False)
    found = DataLoader(DATA, batch_sampler=own)
    assert [type(one).__name__ for one in chain(found)] == ["BatchSampler", "SequentialSampler"]
    assert next(chain(found)) is own


def test_a_list_is_a_sampler_and_a_data_set_inside_one_is_none():
    assert list(chain(DataLoader(DATA, batch_size=4, sampler=[3, 1])))[1] == [3, 1]
    assert all(one is not DATA for one in chain(DataLoader(DATA, batch_size=4, shuffle=True)))


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (Nested(RandomSampler(DATA)), "Nested"),
        (DistributedSampler(DATA, 2, 0), "DistributedSampler"),
        (RandomSampler(DATA), "RandomSampler"),
    ],
)
def test_the_outermost_sampler_that_is_not_torchs_plain_one_decides(sampler, kind):
    assert type(decider(DataLoader(DATA, batch_size=4, sampler=sampler))).__name__ == kind


@pytest.mark.parametrize(
    ("sampler", "when"),
    [
        (Fixed([2, 0, 1]), "never"),
        (Once(5), "once"),
        (Indirect([1, 2, 3]), "each-pass"),
        (RandomSampler(DATA), "each-pass"),
        (SequentialSampler(DATA), "never"),
        (SubsetRandomSampler([1, 2]), "each-pass"),
        (WeightedRandomSampler([1.0, 1.0], 2), "each-pass"),
        (DistributedSampler(DATA, 2, 0, shuffle=False), "never"),
        (DistributedSampler(DATA, 2, 0), "each-pass"),
        ([1, 2], "unknown"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_code_says_when_random_numbers_are_drawn(sampler, when):
    assert draws(sampler) == when


def test_a_sampler_in_a_wrapper_can_be_told_the_epoch():
    inner = DistributedSampler(DATA, 2, 0)
    assert set_epoch_holders(DataLoader(DATA, batch_size=4, sampler=Nested(inner))) == [inner]
    assert set_epoch_holders(DataLoader(DATA, batch_size=4, shuffle=True)) == []


def test_the_place_of_a_rank_is_found_and_torch_reads_it_in_each_pass():
    place = rank_place(DataLoader(DATA, batch_size=4, sampler=Nested(DistributedSampler(DATA, 3, 1))))
    assert (place.world_size, place.rank, place.reads_rank_late) == (3, 1, True)
    assert rank_place(DataLoader(DATA, batch_size=4)) is None


def test_a_rank_that_is_used_when_a_sampler_is_made_is_not_read_late():
    class Early(Fixed):
        def __init__(self, rank, world_size):
            self.rank, self.world_size = rank, world_size
            super().__init__(list(range(20))[rank::world_size])

    assert not rank_place(DataLoader(DATA, batch_size=4, sampler=Early(0, 2))).reads_rank_late


class Mixed(Fixed):
    def __init__(self, generator):
        self.generator = generator

    def __iter__(self):
        yield int(self.generator.integers(10**9))


class Plain(Mixed):
    def __iter__(self):
        yield self.generator.randrange(10**9)


class Old(Mixed):
    def __iter__(self):
        yield self.generator.randint(10**9)


@pytest.mark.parametrize(
    "sampler",
    [
        RandomSampler(DATA, generator=torch.Generator().manual_seed(3)),
        Mixed(np.random.default_rng(3)),
        Old(np.random.RandomState(3)),
        Plain(random.Random(3)),
        Nested(Plain(random.Random(3))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_generators_that_samplers_hold_are_set_back(sampler):
    set_back = generator_states(DataLoader(DATA, batch_size=4, sampler=sampler))
    first, second = list(iter(sampler)), list(iter(sampler))
    assert first != second
    set_back()
    assert list(iter(sampler)) == first
