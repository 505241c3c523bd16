"""Every kind of loader answers the same questions, with the ids, paths and names that its users know."""

import functools
import re

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

import headrace as hr
from headrace.doctor.subject import Subject
from headrace.errors import TargetError


class Photos(Dataset):
    classes = ("cat", "dog")

    def __init__(self, transform=None):
        self.samples = [(f"/data/{i}.png", i % 2) for i in range(5)]
        self.transform = transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def own(samples):
    return samples


def test_a_torch_loader_is_held():
    subject = Subject(DataLoader(Photos(), batch_size=2, drop_last=True, num_workers=1, shuffle=True))
    assert subject.kind == "torch.utils.data.DataLoader"
    assert subject.dataset_kind.endswith("Photos")
    assert (subject.num_samples, subject.num_batches, subject.batch_size) == (5, 2, 2)
    assert (subject.drop_last, subject.num_workers) == (True, 1)
    assert (subject.is_iterable, subject.joins_samples) == (False, True)
    assert (subject.collate_name, subject.has_default_collate) == ("default_collate", True)
    assert subject.classes() == (2, "Photos.classes")
    assert [(subject.sample_id(i), subject.locate(i)) for i in (0, 4)] == [(0, "/data/0.png"), (4, "/data/4.png")]
    assert subject.read(3) == ("/data/3.png", 1)
    assert subject.contract is None


@pytest.mark.parametrize(
    ("dataset", "index", "path"),
    [
        (Subset(Photos(), [4, 2]), 1, "/data/2.png"),
        (ConcatDataset([Photos(), Subset(Photos(), [3])]), 5, "/data/3.png"),
    ],
)
def test_wrappers_are_looked_through(dataset, index, path):
    subject = Subject(dataset)
    assert (subject.sample_id(index), subject.locate(index)) == (index, path)
    assert subject.classes() == (2, "Photos.classes")
    assert subject.read(index)[0] == path
    assert (subject.loader, subject.batch_size, subject.num_workers, subject.num_batches) == (None, None, 0, None)


@pytest.mark.parametrize(
    "wrap", [lambda photos: photos, lambda photos: Subset(photos, [0]), lambda photos: ConcatDataset([photos])]
)
def test_transforms_are_found_where_they_are_kept(wrap):
    photos = Photos(transform=own)
    assert list(Subject(wrap(photos)).transform_slots()) == [(photos, "transform", own)]


@pytest.mark.parametrize(
    ("collate", "name"),
    [
        (own, r"own \(test_subject\.py:\d+\)"),
        (functools.partial(own), r"own \(test_subject\.py:\d+\)"),
        (str, "str"),
    ],
)
def test_a_collate_of_ones_own_is_named_by_its_line(collate, name):
    subject = Subject(DataLoader(Photos(), collate_fn=collate))
    assert re.fullmatch(name, subject.collate_name)
    assert not subject.has_default_collate
    assert subject.collate() is collate


def test_loaders_of_single_samples_join_nothing():
    assert not Subject(DataLoader(Photos(), batch_size=None)).joins_samples
    assert Subject(DataLoader(Photos(), batch_sampler=[[0, 1]])).joins_samples


def test_plans_and_headrace_loaders_are_held():
    plan = hr.arrays(x=np.arange(3), ids=["a", "b", "c"]).map(lambda row: row["x"] + 1, name="add")
    contract = hr.Contract()
    for target in (plan, hr.DataLoader(plan, batch_size=2, contract=contract)):
        subject = Subject(target)
        entered = []
        assert (subject.sample_id(2), subject.read(2, entered.append), entered) == ("c", 3, ["add"])
    assert subject.contract is contract
    assert subject.batch_size == 2
    assert not subject.has_default_collate, "a contract joins by its own rules: it may pad"
    assert Subject(hr.DataLoader(plan)).has_default_collate


def test_streams_are_held_as_streams():
    subject = Subject(DataLoader(Stream(), batch_size=2))
    assert (subject.is_iterable, subject.num_samples, subject.num_batches) == (True, None, None)
    assert list(subject.stream(0, str)) == ["0", "1", "2"]


def test_batched_reads_are_used_where_torch_uses_them():
    class Batched(TensorDataset):
        def __getitems__(self, indices):
            return [("many", index) for index in indices]

    dataset = Batched(torch.arange(3))
    assert Subject(DataLoader(dataset)).read(1) == ("many", 1)
    assert Subject(dataset).read(1) == (torch.tensor(1),)


@pytest.mark.parametrize("target", [{"a": 1}, Dataset(), type("Bare", (), {"__getitem__": lambda self, i: i})()])
def test_what_cannot_be_examined_is_refused(target):
    with pytest.raises(TargetError, match=r"^TARGET is a .*, which cannot be examined: "):
        Subject(target)
