"""What becomes of samples in batches: laws of padding and of leaving out; overwritten memory; what pinning reaches."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, IterableDataset

from headrace.doctor.evidence.batches import Overwrite, Pinning
from headrace.doctor.experiments.batches import DrawBatches, JoinMany
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.probes.dropping import find_dropped, made_of
from headrace.doctor.probes.padding import find_paddings
from headrace.doctor.probes.pinning import find_unreached
from headrace.doctor.subject import Subject

sequences = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=2, max_size=6).filter(
    lambda lists: len(set(map(len, lists))) > 1
)


def padded(lists, fill, *, length=None, at_end=False):
    length = length or max(map(len, lists))
    rows = [[fill] * (length - len(one)) + one if at_end else one + [fill] * (length - len(one)) for one in lists]
    return torch.tensor(rows)


@given(lists=sequences, fill=st.integers(-1, 5), more=st.integers(0, 2), at_end=st.booleans(), data=st.data())
def test_padding_is_recognised_by_its_values_however_it_is_laid_out(lists, fill, more, at_end, data):
    order = data.draw(st.permutations(range(len(lists))))
    length = max(map(len, lists)) + more
    batch = padded([lists[place] for place in order], fill, length=length, at_end=at_end)
    if data.draw(st.booleans()):
        batch = batch.T
    found = find_paddings([torch.tensor(one) for one in lists], range(len(lists)), {"x": batch})
    num_real = sum(one.count(fill) for one in lists)
    for field in found:
        assert (field.field, field.batch_field, field.marked_by) == ("sample", "x", None)
        assert field.num_real == num_real
        assert field.fill == str(fill)
        assert field.real_ids == tuple(place for place, one in enumerate(lists) if fill in one)
    # Where the filling continues what a sample ends with, another reading of the batch is as good.
    if num_real and not any(fill in (one[0], one[-1]) for one in lists):
        assert len(found) == 1
        assert found[0].num_padded == batch.numel() - sum(map(len, lists))


@given(lists=sequences, how=st.sampled_from(["mask", "inverse", "lengths", "list", "offsets", "labels", "name"]))
def test_whatever_tells_real_places_is_recognised(lists, how):
    lengths = torch.tensor(list(map(len, lists)))
    batch = {"x": padded(lists, 0)}
    there = torch.arange(batch["x"].shape[1])[None] < lengths[:, None]
    batch["other"] = {
        "mask": there,
        "inverse": (~there).float(),
        "lengths": lengths,
        "list": lengths.tolist(),
        "offsets": torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)]),
        "labels": padded(lists, -100),
        "name": None,
    }[how]
    if how == "name":
        batch["attention_mask"] = batch.pop("other")
    found = find_paddings([{"x": torch.tensor(one)} for one in lists], range(len(lists)), batch)
    assert all(field.marked_by is not None for field in found if field.batch_field == "x")


def test_a_value_that_no_sample_holds_is_no_doubt():
    (samples, batch) = ([torch.tensor([1, 2, 3]), torch.tensor([4])], torch.tensor([[1, 2, 3], [4, 0, 0]]))
    assert all(field.num_real == 0 for field in find_paddings(samples, (0, 1), batch))


@given(
    values=st.lists(st.integers(0, 1000), min_size=3, max_size=12, unique=True),
    divisor=st.integers(2, 5),
    none_at=st.sets(st.integers(0, 11), max_size=2),
)
def test_exactly_the_samples_that_do_not_pass_are_found(values, divisor, none_at):
    samples = [None if place in none_at else value for place, value in enumerate(values)]

    def join(chosen):
        return torch.tensor([one for one in chosen if one is not None and one % divisor])

    passes = [place for place, one in enumerate(samples) if one is not None and one % divisor]
    dropped, num_tried = find_dropped(join, samples, lambda: True)
    neighbours = [one for one in samples if one is not None]
    if any(a % divisor and b % divisor for a, b in itertools.pairwise(neighbours)):
        assert num_tried == len(samples)
        assert dropped == [place for place in range(len(samples)) if place not in passes]
    else:  # no pair of neighbours that both stay: nothing can be held against anything
        assert set(dropped).isdisjoint(passes)


def test_collate_of_a_sample_that_is_left_out_alone():
    assert made_of(lambda chosen: None, 1) == "None"
    assert made_of(lambda chosen: torch.zeros(0, 3), 1) == "a batch of 0"
    assert made_of(lambda chosen: [], 1) == "a batch of 0"
    assert made_of(lambda chosen: chosen[1], 1) == "IndexError: list index out of range"
    assert made_of(lambda chosen: torch.zeros(2), 1) == "a batch"


class Named(NamedTuple):
    a: torch.Tensor
    b: dict


@dataclasses.dataclass
class Plain:
    a: torch.Tensor
    b: object = None


class Pins:
    def __init__(self):
        self.a = torch.zeros(1)

    def pin_memory(self):
        self.a = self.a.pin_memory()
        return self


@pytest.mark.parametrize(
    ("batch", "num", "left"),
    [
        (torch.zeros(2), 1, []),
        ({"x": [torch.zeros(2), (torch.zeros(1), "text", 3)]}, 2, []),
        (Named(torch.zeros(2), {"y": torch.ones(1)}), 2, []),
        (Pins(), 1, []),
        (Plain(torch.zeros(2)), 1, [(".a", "Plain")]),
        ([Plain(torch.zeros(2), [torch.ones(1)]), torch.ones(1)], 3, [("[0].a", "Plain"), ("[0].b[0]", "Plain")]),
    ],
)
def test_pinning_reaches_what_torch_looks_into(batch, num, left):
    original = torch.Tensor.pin_memory
    assert find_unreached(batch) == (num, left)
    assert torch.Tensor.pin_memory is original


class Buffered(Dataset):
    def __init__(self, copies):
        self.buffer, self.copies = np.zeros(3, np.float32), copies

    def __len__(self):
        return 12

    def __getitem__(self, index):
        self.buffer[:] = index
        return torch.from_numpy(self.buffer.copy() if self.copies else self.buffer)


class BufferedCollate:
    def __init__(self):
        self.out = torch.zeros(4, 3)

    def __call__(self, samples):
        return torch.stack(samples, out=self.out)


class Stream(IterableDataset):
    def __iter__(self):
        buffer = np.zeros(2)
        for number in range(9):
            buffer[:] = number
            yield buffer


def run(experiment, target):
    recorder = FlightRecorder.create()
    try:
        return list(experiment.run(Subject(target), Bench(recorder)))
    finally:
        recorder.close()


def overwritten(records):
    return next((record for record in records if isinstance(record, Overwrite)), None)


def test_a_sample_that_is_overwritten_is_named_with_its_buffer():
    join = JoinMany(indices=range(12), seed=0, limit_s=30)
    found = overwritten(run(join, DataLoader(Buffered(copies=False), batch_size=4)))
    assert (found.first, found.second, found.buffer, found.shares_memory) == (0, 1, "dataset.buffer", True)
    assert overwritten(run(join, DataLoader(Buffered(copies=True), batch_size=4))) is None


@pytest.mark.parametrize(
    ("loader", "is_overwritten"),
    [
        (DataLoader(Buffered(copies=True), batch_size=4, collate_fn=BufferedCollate()), True),
        (DataLoader(Buffered(copies=True), batch_size=4), False),
        (DataLoader(Buffered(copies=False), batch_size=1), False),
        (DataLoader(Stream(), batch_size=None), True),
        (DataLoader(Stream(), batch_size=3), False),
    ],
)
def test_batches_are_held_against_what_they_were(loader, is_overwritten):
    records = run(DrawBatches(seed=0, limit_s=30), loader)
    assert (overwritten(records) is not None) == is_overwritten
    (pinning,) = [record for record in records if isinstance(record, Pinning)]
    assert not pinning.is_wanted


def test_a_loader_of_another_kind_is_left_alone():
    assert run(DrawBatches(seed=0, limit_s=30), [1, 2, 3]) == []
