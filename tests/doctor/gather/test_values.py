"""NaN and infinity are followed to the line that gives them, or to where they are stored; loops without an end are found."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset

from headrace.doctor.experiments.past_the_end import AskPastTheEnd
from headrace.doctor.experiments.values import FindOrigins
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.probes.loops import find_loops
from headrace.doctor.probes.origins import heard_origins
from headrace.doctor.subject import Subject


def numpy_division():
    x = np.ones(3)
    return (x - x.mean()) / x.std()


def torch_division():
    x = torch.ones(3)
    return (x - x.mean()) / x.std()


def torch_in_place():
    x = torch.zeros(3)
    x.log_()
    return x


def method_of_one():
    return torch.ones(1).std() * 2


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize("function", [numpy_division, torch_division, torch_in_place, method_of_one])
def test_the_first_operation_that_gives_them_is_named_by_its_line(function):
    heard = []
    with heard_origins(heard):
        function()
    lines, first = inspect.getsourcelines(function)
    guilty = next(place for place, line in enumerate(lines) if any(word in line for word in ("std()", "log_()")))
    assert heard[0].where == f"test_values.py:{first + guilty}"
    assert heard[0].code == lines[guilty].strip()


def test_what_was_no_number_before_has_no_origin_here():
    heard = []
    with heard_origins(heard):
        torch.from_numpy(np.array([1.0, np.nan])).mul(2).sum()
        np.array([np.nan, 1.0]) + 1
    assert heard == []


class Table(Dataset):
    def __init__(self):
        self.x = torch.arange(40.0).reshape(10, 4)
        self.x[3, 1] = float("nan")
        self.texts = [[0.5, float("inf")] if row == 5 else [0.5, 1.0] for row in range(10)]

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index >= 10:
            raise IndexError(index)
        return {"x": self.x[index], "cells": self.texts[index], "log": (self.x[index].nan_to_num(1.0) - 4).abs().log()}


def run(experiment, target):
    recorder = FlightRecorder.create()
    try:
        return list(experiment.run(Subject(target), Bench(recorder)))
    finally:
        recorder.close()


def test_stored_and_computed_values_are_told_apart():
    *traced, num = run(FindOrigins(indices=(1, 3, 5), seed=0, limit_s=60), Table())
    fields = [one.field for one in traced]
    assert num == 3
    assert [(one.sample_ids, one.field, one.kind) for one in fields] == [
        ((1,), "log", "infinity"),
        ((3,), "x", "NaN"),
        ((5,), "cells", "infinity"),
    ]
    assert [(one.origin, one.where) for one in fields[1:]] == [
        ("stored", "dataset.x[3]"),
        ("stored", "dataset.texts[5]"),
    ]
    assert fields[0].origin == "computed"


class Masked(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        gaps = torch.tensor([1.0, float("nan"), 3.0])
        return {
            "bias": torch.tensor([0.0, -torch.inf]),
            "gaps": gaps,
            "there": gaps.isfinite(),
            "all": gaps * 0 + torch.nan,
        }


def test_values_that_the_sample_declares_are_marked():
    *traced, _ = run(FindOrigins(indices=(0,), seed=0, limit_s=60), Masked())
    assert {one.field.field: one.field.is_declared for one in traced} == {"bias": True, "gaps": True, "all": False}


class Stream(IterableDataset):
    def __iter__(self):
        for number in range(200):
            yield torch.tensor(1.0) / (number - 7)


def test_of_a_stream_the_beginning_is_looked_at():
    traced, num = run(FindOrigins(indices=None, seed=0, limit_s=60), Stream())
    assert (traced.field.sample_ids, traced.field.origin, num) == ((7,), "computed", 64)


class Endless:
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return index % 5


class OneTooShort(Endless):
    def __getitem__(self, index):
        return [0, 1, 2, 3, 4, 5][index]


class Iterates(Endless):
    def __iter__(self):
        return iter(range(5))


@pytest.mark.parametrize(
    ("dataset", "answered"), [(Endless(), (5, 6, 22)), (OneTooShort(), (5,)), (Iterates(), ()), (Table(), ())]
)
def test_rows_beyond_the_end(dataset, answered):
    (found,) = run(AskPastTheEnd(seed=0), dataset)
    assert found.answered == answered
    assert found.num_samples == len(dataset)


LOOPS = """
data = Rows(3)
self.rows: Rows = Rows(4)
for x in data: pass            # counted
for i, x in enumerate(data): print(x)   # counted
[x for x in self.rows]         # counted
list(data)                     # counted
max(len(x) for x in data)      # counted
def mean(part):
    for x in part: pass        # counted
mean(data)
for x in loader.dataset: pass  # counted
for x in data:
    if x > 3:
        break
for x in DataLoader(data): pass
for x in range(len(data)): data[x]
for x in zip(range(3), data): pass
for x in other: pass
next(iter(data))
"""


def test_loops_over_a_data_set_are_found_and_others_are_not():
    source = textwrap.dedent(LOOPS)
    wanted = [number for number, line in enumerate(source.splitlines(), 1) if "# counted" in line]
    assert find_loops(ast.parse(source), "Rows") == wanted
