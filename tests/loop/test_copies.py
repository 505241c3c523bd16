"""Copies for writing: equal, apart from the original, in memory that is used again."""

import collections

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.loop.test_tree import TENSORS, same, values

from headrace.errors import CheckpointError
from headrace.loop.checkpoint.copies import Copier, copied


@given(values)
def test_a_copy_is_what_it_is_a_copy_of(value):
    assert same(copied(value), value)


@given(st.lists(st.dictionaries(st.text(), st.sampled_from(TENSORS)), max_size=4))
def test_memory_that_is_used_again_holds_what_was_copied_last(states):
    copier = Copier()
    for state in states:
        assert same(copier.copied(state), state)


def test_a_copy_does_not_change_with_the_original():
    state = {"a": torch.zeros(3), "b": [torch.ones(2, 2).T, {"c": [1]}], "d": collections.OrderedDict(x=torch.zeros(1))}
    made = copied(state)
    state["a"].add_(1)
    state["b"][0].add_(1)
    state["b"][1]["c"].append(2)
    state["d"]["x"].add_(1)

    assert same(made["a"], torch.zeros(3))
    assert same(made["b"], [torch.ones(2, 2).T, {"c": [1]}])
    assert same(made["d"], collections.OrderedDict(x=torch.zeros(1)))


def test_one_tensor_under_two_names_is_copied_once():
    weight = torch.ones(4)
    made = copied({"a": weight, "b": weight.detach()})
    assert made["a"] is made["b"]


def test_the_second_copy_lies_where_the_first_one_lay():
    state = {name: torch.rand(5, 7) for name in "abc"}
    copier = Copier()
    first = {one.data_ptr() for one in copier.copied(state).values()}
    second = copier.copied({name: value + 1 for name, value in state.items()})

    assert {one.data_ptr() for one in second.values()} == first
    assert same(second, {name: value + 1 for name, value in state.items()})


def test_memory_of_what_is_gone_is_not_kept():
    copier = Copier()
    copier.copied({"a": torch.rand(5), "b": torch.rand(6)})
    copier.copied({"a": torch.rand(5)})

    assert [form[0] for form in copier._kept] == [(5,)]


def test_what_is_no_data_is_refused():
    with pytest.raises(CheckpointError, match="which is no data"):
        copied({"a": object()})
