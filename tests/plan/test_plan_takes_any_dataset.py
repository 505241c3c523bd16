"""Plan.of takes a plan, a source or any map-style data set, and tells everyone else what is missing."""

import pathlib

import numpy as np
import pytest
import torch.utils.data

import headrace as hr
from headrace.engine.plan import Plan
from headrace.engine.source import ArraySource, DatasetSource
from headrace.errors import ConfigurationError


class MapStyle:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return index


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter([1, 2])

    def __len__(self):  # a stream may know its length, and inherits a __getitem__ that does not work
        return 2


class NoLength:
    def __getitem__(self, index):
        return index


class Frame:
    """Stands for a table that is indexed by column."""

    iloc = None

    def __len__(self):
        return 2

    def __getitem__(self, name):
        raise KeyError(name)


class WithDataset:
    dataset = MapStyle()

    def __len__(self):
        return 2

    def __iter__(self):
        return iter(())


def test_a_plan_is_itself():
    plan = hr.arrays([1])
    assert Plan.of(plan) is plan


def test_a_source_is_taken_as_it_is():
    source = ArraySource([1, 2])
    assert Plan.of(source).source is source


@pytest.mark.parametrize(
    "dataset",
    [MapStyle(), [0, 1], (0, 1), range(2), torch.utils.data.Subset(MapStyle(), [0, 1]), np.arange(2), torch.arange(2)],
    ids=lambda dataset: type(dataset).__name__,
)
def test_a_map_style_data_set_is_wrapped(dataset):
    plan = Plan.of(dataset)
    assert isinstance(plan.source, DatasetSource)
    assert [int(sample) for sample in plan] == [0, 1]


@pytest.mark.parametrize(
    ("data", "message", "do"),
    [
        (Stream(), "^Stream is a stream: it has no row numbers\n", "DataLoader"),
        (iter([1]), "^list_iterator is a stream", "DataLoader"),
        ((x for x in [1]), "^generator is a stream", "DataLoader"),
        ({1, 2}, "^set is a stream", "DataLoader"),
        (NoLength(), "^NoLength has no __len__\n", "add what is missing"),
        (object(), "^object has no __len__ and no __getitem__\n", "add what is missing"),
        (None, "^NoneType has no __len__ and no __getitem__\n", "add what is missing"),
        (MapStyle, "^MapStyle is a class, not a data set\n", r"MapStyle\(\.\.\.\)"),
        (WithDataset(), "^WithDataset has no __getitem__\n", r"\.dataset"),
        (
            {"train": [1], "test": [2]},
            "^a dict is read by key, not by row number; its keys: 'train', 'test'\n",
            "split",
        ),
        (Frame(), "^a Frame is read by column, not by row number\n", r"headrace\.arrays"),
        ("data/train", "^a path is not a data set: 'data/train'\n", r"headrace\.folder\('data/train'\)"),
        (pathlib.Path("x"), r"^a path is not a data set: PosixPath\('x'\)\n", r"headrace\.folder"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_everything_else_is_told_what_is_missing(data, message, do):
    with pytest.raises(ConfigurationError, match=message) as caught:
        Plan.of(data)
    assert caught.match(rf"do:.*{do}")
