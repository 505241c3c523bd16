"""Whatever a reading does to arrays, containers and attributes is named, and put back exactly; growth is no change."""

import copy
import functools
import importlib
import random
import sys
import types

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.probes.held_state import HeldState
from headrace.doctor.probes.roots import roots_of, sample_keys

leaves = st.one_of(st.integers(-9, 9), st.text("ab", max_size=3), st.none())
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("pqrs"), inner, max_size=4),
    max_leaves=20,
)


def spoil(value, draw):
    """Changes a tree somewhere: assigns, removes, clears, or goes deeper."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = draw.choice(keys)
    if isinstance(value[key], (list, dict)) and draw.random() < 0.7:
        spoil(value[key], draw)
    elif draw.random() < 0.5:
        value[key] = 100
    else:
        del value[key]


@given(tree=trees, seed=st.integers(0, 2**16))
def test_containers_come_back_whatever_was_done_to_them(tree, seed):
    root = {"held": tree}
    before = copy.deepcopy(root)
    state = HeldState([{"root": root}], keys=(), num_samples=None)
    assert state.changes() == []
    spoil(root, random.Random(seed))
    assert bool(state.changes()) == (root != before)
    state.restore()
    assert root == before


@given(seed=st.integers(0, 2**16))
def test_arrays_tensors_and_their_views_come_back(seed):
    draw = np.random.default_rng(seed)
    holder = types.SimpleNamespace(
        array=draw.random((3, 4)), tensor=torch.from_numpy(draw.random(5)), whole=draw.integers(0, 9, (6, 2))
    )
    before = copy.deepcopy(holder)
    state = HeldState([{"dataset": holder}], keys={4}, num_samples=6)
    holder.array[draw.integers(0, 3)] += 1
    holder.tensor.mul_(2)
    holder.whole[4] -= 1
    assert {change.path for change in state.changes()} == {"dataset.array", "dataset.tensor", "dataset.whole[4]"}
    assert [change.path for change in state.changes() if change.is_of_sample] == ["dataset.whole[4]"]
    state.restore("dataset.array")
    assert {change.path for change in state.changes()} == {"dataset.tensor", "dataset.whole[4]"}
    state.restore()
    assert np.array_equal(holder.array, before.array)
    assert torch.equal(holder.tensor, before.tensor)
    assert np.array_equal(holder.whole, before.whole)


def test_what_is_added_is_no_change_and_stays():
    holder = types.SimpleNamespace(cache={}, log=[1], later=None)
    state = HeldState([{"dataset": holder}], keys=(), num_samples=None)
    holder.cache[3] = np.zeros(2)
    holder.log.append(2)
    holder.new = 1
    assert state.changes() == []
    state.restore()
    assert (list(holder.cache), holder.log, holder.new) == ([3], [1, 2], 1)


def test_generators_are_found_where_they_hide_and_set_back():
    rng, own, noise, hidden = np.random.default_rng(0), random.Random(1), torch.Generator(), np.random.RandomState(2)

    def augment(x):
        return x + hidden.rand()

    class Transform:
        __slots__ = ("rng",)

    transform = Transform()
    transform.rng = rng
    holder = types.SimpleNamespace(
        steps=[transform, functools.partial(augment)],
        draw=own.random,
        cached=functools.lru_cache(augment),
        noise=noise,
        system=random.SystemRandom(),
    )
    state = HeldState([{"dataset": holder}], keys=(), num_samples=None)
    # A built-in method keeps its generator to itself: `own.random` is not looked into.
    assert set(map(id, state.generators.values())) == set(map(id, (rng, hidden, noise)))
    before = state.generator_states()
    drawn = (rng.random(), hidden.rand(), torch.rand(2, generator=noise))
    state.set_generators(before)
    again = (rng.random(), hidden.rand(), torch.rand(2, generator=noise))
    assert drawn[:2] == again[:2]
    assert torch.equal(drawn[2], again[2])


def test_what_a_memoised_function_keeps_is_seen():
    @functools.cache
    def load(key):
        return np.full(3, key)

    array = load(5)
    state = HeldState([{"load": load}], keys=(), num_samples=None)
    array += 1
    (change,) = state.changes()
    assert (change.kind, change.is_of_sample) == ("content", True)
    assert change.path.startswith("load (lru_cache)")


@pytest.mark.parametrize("key", [0, 7, 19])
def test_the_row_under_subsets_is_one_of_the_keys(key):
    from torch.utils.data import Subset

    from headrace.doctor.subject import Subject

    data = Subset(Subset(list(range(40)), range(39, -1, -1)), range(0, 40, 2))
    assert {key, 2 * key, 39 - 2 * key} <= sample_keys(Subject(data), key)


def test_global_generators_are_nobodys_own():
    """Functions of libraries hold them as defaults of arguments: `from torch.utils.data import random_split`."""
    roots = {
        "split": torch.utils.data.random_split,
        "torch": torch.default_generator,
        "numpy": np.random.mtrand._rand,
        "python": random._inst,
        "own": torch.Generator(),
    }
    assert set(HeldState([roots], keys=(), num_samples=None).generators) == {"own"}


def test_what_is_near_the_data_set_is_seen_however_much_a_program_holds(monkeypatch, tmp_path):
    """Looking ends after some thousand things: of a large program, what defines the data set comes first."""
    names = ("crowd_before", "defining", "crowd_after")
    (tmp_path / "defining.py").write_text("buffer = [1]\nclass Rows:\n    pass\n")
    for name in ("crowd_before", "crowd_after"):
        (tmp_path / f"{name}.py").write_text("crowd = [[[i, j, []] for j in range(200)] for i in range(200)]\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        modules = {name: importlib.import_module(name) for name in names}
        rows = modules["defining"].Rows()
        rows.own = [1]
        wrapped = types.SimpleNamespace(dataset=rows)
        state = HeldState(roots_of(types.SimpleNamespace(dataset=wrapped, loader=None)), keys=(), num_samples=None)
        assert not state.is_complete
        rows.own[0] = 2
        modules["defining"].buffer[0] = 2
        assert [change.path for change in state.changes()] == ["dataset.dataset.own[0]", "defining.buffer[0]"]
    finally:
        for name in names:
            sys.modules.pop(name, None)
