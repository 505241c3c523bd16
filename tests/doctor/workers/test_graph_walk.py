"""Whatever holds an object, the walk finds it once and says how it is reached; and it always ends."""

import functools
import random
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.lab import spies
from headrace.doctor.lab.spies import readers
from headrace.doctor.probes.graph_walk import walk

NEEDLE = random.Random(3)
SPARE = random.Random(4)


class Holder:
    def __init__(self, **held):
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("empty", "rng")

    def __init__(self, rng):
        self.rng = rng


class WithClassAttribute:
    shared = NEEDLE


class UsesModuleVariable:
    def draw(self):
        return [SPARE.random() for _ in range(2)]


class Touchy:
    """Looking at it in the ordinary way fails."""

    def __init__(self):
        self.rng = NEEDLE

    @property
    def trap(self):
        raise AssertionError("a property was run")

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")

    def __iter__(self):
        raise AssertionError("it was iterated")


def closing_over(rng):
    def draw():
        return rng.random()

    return draw


def default(x, rng=NEEDLE):
    return rng.random() + x


def paths(root, needle=NEEDLE, **limits):
    return [path for path, value in walk(root, **limits) if value is needle]


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (NEEDLE, "dataset"),
        (Holder(transform=Holder(transforms=[None, Holder(rng=NEEDLE)])), "dataset.transform.transforms[1].rng"),
        (Holder(dataset=Holder(rng=NEEDLE)), "dataset.dataset.rng"),
        (Slotted(NEEDLE), "dataset.rng"),
        ({"a": (NEEDLE,)}, "dataset['a'][0]"),
        (functools.partial(print, NEEDLE), "dataset.args[0]"),
        (functools.partial(print, rng=NEEDLE), "dataset.keywords['rng']"),
        (closing_over(NEEDLE), "dataset.closure.rng"),
        (NEEDLE.uniform, "dataset.__self__"),
        (WithClassAttribute(), "dataset.shared"),
        (default, "dataset.defaults[0]"),
    ],
)
def test_each_way_to_hold_has_its_path(root, path, monkeypatch):
    monkeypatch.setattr("headrace.doctor.probes.graph_walk.is_user_code", lambda filename: filename == __file__)
    assert paths(root) == [path]


def test_none_of_the_users_code_runs():
    assert [path for path, value in walk(Touchy()) if value is NEEDLE] == ["dataset.rng"]


def test_a_module_variable_that_a_method_uses_is_named_by_its_module():
    assert paths(UsesModuleVariable(), SPARE) == [f"{__name__}.SPARE"]


def test_circles_end_and_nothing_is_met_twice():
    one, other = Holder(), Holder()
    one.other, other.one, one.again = other, one, other
    found = [id(value) for _, value in walk(one)]
    assert len(found) == len(set(found))
    assert id(other) in found


def test_large_things_are_looked_at_in_part_only():
    big = Holder(rows=[Holder(n=i) for i in range(100_000)], pixels=np.zeros(10**6), rng=NEEDLE)
    found = list(walk(big))
    assert len(found) < 500
    assert any(value is NEEDLE for _, value in found)


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_walk_is_bounded_and_leaves_the_object_as_it_was(value):
    before = repr(value)
    holder = Holder(value=value)
    assert len(list(walk(holder, max_items=5))) <= 5
    assert len(list(walk(holder, max_depth=1))) <= 2 + len(vars(type(holder)))
    assert repr(value) == before


def test_modules_are_not_entered():
    module = types.ModuleType("m")
    module.rng = NEEDLE
    assert paths(Holder(module=module)) == []


def test_a_spy_before_a_transform_is_no_step_on_the_way():
    holder = Holder(transform=Holder(rng=NEEDLE))
    spies.enter_transforms(None, [(holder, "transform", holder.transform)])
    assert paths(holder) == ["dataset.transform.rng"]


def test_of_a_spied_function_only_the_original_is_looked_into():
    library = types.ModuleType("soundfile")
    library.SoundFile, library.read = type("SoundFile", (Slotted,), {}), closing_over(SPARE)
    readers.SPIES["soundfile"](Holder(rng=NEEDLE), library)
    found = [path for path, value in walk(Holder(read=library.read)) if value in (NEEDLE, SPARE)]
    assert found == ["dataset.read.closure.rng"]
