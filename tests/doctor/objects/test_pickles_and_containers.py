"""The innermost object that cannot be pickled is named by its path; large containers are measured by their elements."""

import functools
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.experiments.containers import measure
from headrace.doctor.experiments.part_pickles import try_pickling


class Holder:
    def __init__(self, **held):
        self.__dict__.update(held)


class Drops(Holder):
    def __getstate__(self):
        return {}


def module_function(x):
    return x


@pytest.mark.parametrize(
    ("part", "path", "kind"),
    [
        (Holder(transform=Holder(steps=[abs, lambda x: x])), "dataset.transform.steps[1]", "a lambda"),
        (Holder(lock=threading.Lock()), "dataset.lock", "_thread.lock"),
        (functools.partial(module_function, x=lambda: 1), "dataset.keywords['x']", "a lambda"),
        (
            Holder(tables={"a": [1], "b": [Holder(rows=(n for n in range(3)))]}),
            "dataset.tables['b'][0].rows",
            "generator",
        ),
    ],
)
def test_the_innermost_object_that_refuses_is_named(part, path, kind):
    found = try_pickling("dataset", part)
    assert (found.size_bytes, found.culprit, found.culprit_kind) == (None, path, kind)
    assert found.error


def test_a_class_inside_a_function_is_named_as_such():
    class Local:
        pass

    found = try_pickling("dataset", Holder(inner=Local()))
    assert found.culprit == "dataset.inner"
    assert "defined inside a function" in found.culprit_kind
    assert found.where.startswith("tests/doctor/objects/test_pickles_and_containers.py:")


@pytest.mark.parametrize(
    "part",
    [Holder(x=np.arange(3)), Drops(lock=threading.Lock()), module_function, functools.partial(module_function, 1)],
)
def test_what_travels_has_a_size(part):
    found = try_pickling("dataset", part)
    assert found.size_bytes > 0
    assert found.culprit is None


def test_tensors_travel_by_shared_memory_and_not_in_the_pickle():
    assert try_pickling("dataset", Holder(x=torch.zeros(1_000_000))).size_bytes < 10_000


def exact(value, seen):
    """The simplest correct count: every object once."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and -5 <= value <= 256) or id(value) in seen:
        return 0
    seen.add(id(value))
    inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(exact(part, seen) for part in inner)


@given(st.lists(st.lists(st.floats(allow_nan=False).map(lambda x: x + 0.5), max_size=4), min_size=1, max_size=50))
def test_a_container_that_is_looked_at_whole_is_counted_exactly(rows):
    assert measure(rows)[0] == sum(exact(row, seen) for seen in [set()] for row in rows)


def test_the_bytes_of_equal_elements_are_estimated_within_a_few_percent():
    rows = [{"name": f"{n:09d}", "box": [n + 0.5, n + 1.5]} for n in range(30_000)]
    whole = sys.getsizeof(rows) + sum(
        sys.getsizeof(row) + sys.getsizeof(row["name"]) + sys.getsizeof(row["box"]) + 2 * sys.getsizeof(0.5)
        for row in rows
    )
    assert measure(rows)[1] == pytest.approx(whole, rel=0.05)


def test_the_contents_of_arrays_do_not_count():
    assert measure([np.zeros(100_000) for _ in range(100)])[1] < 100_000
