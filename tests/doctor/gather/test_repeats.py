"""Samples read again: what reading changes is proven and named; random, pure and odd data sets are told apart."""

import functools
import os
import random
import time

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from headrace.doctor.experiments.repeats import RepeatReads
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.subject import Subject


class Rows(Dataset):
    def __init__(self):
        self.rows = np.random.default_rng(0).random((20, 6)).astype(np.float32)
        self.rng = np.random.default_rng(1)
        self.calls, self.kept, self.targets = 0, {}, [{"box": [1.0, float(i)]} for i in range(20)]

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return getattr(self, self.how)(index)

    def pure(self, index):
        return self.rows[index] * 2, index

    def in_place(self, index):
        row = self.rows[index]
        row *= np.float32(0.5)
        return row

    def random_in_place(self, index):
        start = self.rng.integers(0, 5)
        self.rows[index, start] = 0
        return torch.from_numpy(self.rows[index])

    def augmented(self, index):
        return torch.from_numpy(self.rows[index]) + self.rng.normal() + random.random() + torch.rand(())

    def counter(self, index):
        self.calls += 1
        return self.rows[index] + self.calls

    def counted(self, index):
        self.calls += 1
        return self.rows[index]

    def replaced(self, index):
        self.targets[index]["box"] = [value / 2 for value in self.targets[index]["box"]]
        return dict(self.targets[index])

    def popped(self, index):
        return self.targets[index].pop("box")

    def odd(self, index):
        return {"row": self.rows[index], "time": time.perf_counter(), "noise": os.urandom(4)}

    def kept_after_random(self, index):
        if index not in self.kept:
            self.kept[index] = self.rows[index] * self.rng.random()
        return self.kept[index]

    def kept_before_random(self, index):
        if index not in self.kept:
            self.kept[index] = self.rows[index] * 2
        return self.kept[index] * (1 if self.rng.random() < 0.95 else 2)

    def seeded(self, index):
        np.random.seed(3)
        return self.rows[index] + np.random.random()

    def by_index(self, index):
        return self.rows[index] + np.random.default_rng(index).random()

    def made_anew(self, index):
        return self.rows[index] + np.random.default_rng(5).random()


def read_again(how, indices=(0, 7), loader=False):
    rows = Rows()
    rows.how = how
    target = DataLoader(rows, batch_size=4) if loader else rows
    recorder = FlightRecorder.create()
    try:
        (found,) = RepeatReads(indices=indices, seed=0, limit_s=60).run(Subject(target), Bench(recorder))
    finally:
        recorder.close()
    return found


@pytest.mark.parametrize(
    ("how", "path"),
    [
        ("in_place", "dataset.rows[7]"),
        ("random_in_place", "dataset.rows[7]"),
        ("counter", "dataset.calls"),
        ("replaced", "dataset.targets[7]['box']"),
        ("popped", "dataset.targets[7]['box']"),
    ],
)
def test_the_cause_is_named_by_its_path(how, path):
    found = read_again(how)
    assert found.samples[1].changed[0].path == path
    assert found.samples[1].changed[0].is_of_sample == (how != "counter")
    assert found.samples[1].outcome == ("fails" if how == "popped" else "differs")


@pytest.mark.parametrize("how", ["pure", "augmented", "counted", "by_index", "kept_before_random", "made_anew"])
def test_what_generators_explain_is_equal(how):
    found = read_again(how, loader=True)
    assert [(one.outcome, one.changed) for one in found.samples] == [("equal", ())] * 2


def test_what_differs_without_a_cause_that_was_seen_proves_nothing():
    for one in read_again("odd").samples:
        assert (one.outcome, one.changed) == ("differs", ())
        assert set(one.fields) - {"time"} == {"noise"}  # the time differs by more than rounding if the clock is young


def test_generators_that_a_reading_moves_are_named():
    (one, _) = read_again("augmented").samples
    assert set(one.drawn_first) == set(one.drawn_later) == {"random", "torch", "dataset.rng"}
    assert not one.is_same_under_seeds


@pytest.mark.parametrize(
    ("how", "first", "later", "is_same"),
    [
        ("pure", (), (), True),
        ("kept_after_random", ("dataset.rng",), (), True),
        ("kept_before_random", ("dataset.rng",), ("dataset.rng",), None),
        ("by_index", (), (), True),
    ],
)
def test_random_steps_are_seen_to_act_once_or_always(how, first, later, is_same):
    for one in read_again(how).samples:
        assert (one.drawn_first, one.drawn_later) == (first, later)
        assert is_same is None or one.is_same_under_seeds == is_same


def test_constant_seeds_are_named_with_their_line():
    found = read_again("seeded")
    assert all(
        one.is_same_under_seeds and "numpy.random.seed(3) at test_repeats.py" in one.seedings[0]
        for one in found.samples
    )
    assert np.random.seed.__module__ != __name__  # nothing is left of the listening
    (maker,) = read_again("made_anew").constant_generators
    assert maker.endswith("np.random.default_rng(5)")
    assert read_again("by_index").constant_generators == ()


def test_a_sample_that_cannot_be_read_is_no_verdict():
    class Broken(Rows):
        def __getitem__(self, index):
            raise ValueError

    recorder = FlightRecorder.create()
    (found,) = RepeatReads(indices=(0,), seed=0, limit_s=60).run(Subject(Broken()), Bench(recorder))
    recorder.close()
    assert found.samples[0].outcome == "unreadable"


@functools.cache
def memoised(index):
    return torch.full((4,), float(index + 1))


def test_memoised_tensors_that_are_changed_in_place_are_found():
    class Memoised(Rows):
        def __getitem__(self, index):
            return memoised(index).sub_(0.5)

    recorder = FlightRecorder.create()
    (found,) = RepeatReads(indices=(3,), seed=0, limit_s=60).run(Subject(Memoised()), Bench(recorder))
    recorder.close()
    assert "lru_cache" in found.samples[0].changed[0].path
