"""Several loaders are told apart by name; one data set is never cut up, and what is no data is refused."""

import os
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import headrace as hr
from headrace.doctor.subject import Subject, split_up
from headrace.doctor.subject.groups import is_group
from headrace.errors import TargetError

os.environ.setdefault("USE_TF", "0")  # transformers may not take the TensorFlow that stands beside it

DATA = TensorDataset(torch.arange(4))
TRAIN, VAL, TEST = (DataLoader(DATA, batch_size=2) for _ in range(3))


class Batches:
    def __iter__(self):
        return iter([np.zeros((2, 3))])


class Graph:
    """A sample that can be walked."""

    def __iter__(self):
        return iter(())

    def __getitem__(self, name):
        raise KeyError(name)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


class Splits(NamedTuple):
    test: object
    train: object
    classes: int


WALKED = Batches()
GRAPHS = (Graph(), Graph())


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ((TRAIN, VAL), {"train": TRAIN, "val": VAL}),
        ([TRAIN, VAL, TEST], {"train": TRAIN, "val": VAL, "test": TEST}),
        ((TRAIN, None, TEST), {"train": TRAIN, "test": TEST}),
        ((TRAIN, VAL, 10), {"train": TRAIN, "val": VAL}),
        ((DATA, DATA), {"train": DATA, "val": DATA}),
        ({"validation": VAL, "train": TRAIN, "num_classes": 3}, {"train": TRAIN, "val": VAL}),
        ({"Dev": VAL, "extra": TEST}, {"val": VAL, "extra": TEST}),
        ({"only": TRAIN}, {"only": TRAIN}),
        (Splits(TEST, TRAIN, 3), {"train": TRAIN, "test": TEST}),
        ((TRAIN, 10), {"": TRAIN}),
        ((WALKED, 10), {"": WALKED}),
        ((WALKED, TRAIN, VAL, TEST), {"train": WALKED, "val": TRAIN, "test": VAL, "loader 4": TEST}),
    ],
)
def test_loaders_are_named(target, named):
    assert is_group(target)
    found = split_up(target)
    assert list(found) == list(named)
    assert all(found[name] is named[name] for name in named)


@pytest.mark.parametrize(
    "target",
    [
        TRAIN,
        DATA,
        hr.arrays(x=[1, 2]),
        Stream(),
        WALKED,
        [1, 2, 3],
        [(np.zeros(3), 1), (np.zeros(3), 0)],
        ((np.zeros(3), 1), (np.zeros(3), 0)),
        list(GRAPHS),
        GRAPHS,
        (np.zeros((4, 2)), np.zeros(4)),
        tuple({"x": 1} for _ in range(100)),
        torch.zeros(4, 2),
    ],
)
def test_one_data_set_stays_one(target):
    assert not is_group(target)
    assert split_up(target) == {"": target} if not hasattr(target, "shape") else split_up(target)[""] is target


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"a": [1], "b": 2}, r"^there is nothing to examine in a dict of 'a', 'b', none of which is a loader$"),
        (3, r"^there is nothing to examine in a int$"),
        (iter([1]), r"^there is nothing to examine in a list_iterator$"),
    ],
)
def test_what_is_no_data_is_refused(target, message):
    with pytest.raises(TargetError) as caught:
        split_up(target)
    assert caught.match(f"(?m){message}")
    assert caught.match(r"\(train, val\)")


def test_a_loader_beside_other_things_is_held():
    assert Subject((TRAIN, 10)).loader is TRAIN


def test_several_are_not_held_as_one():
    with pytest.raises(TargetError, match=r"of 2 loaders \(train, val\); one is examined at a time"):
        Subject((TRAIN, VAL))


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"x": torch.zeros(2), "labels": index % 2}


@pytest.mark.slow
def test_a_lightning_data_module_is_prepared_and_asked():
    lightning = pytest.importorskip("lightning")
    done = []

    class Module(lightning.LightningDataModule):
        def prepare_data(self):
            done.append("prepare")

        def setup(self, stage):
            done.append(stage)

        def train_dataloader(self):
            return TRAIN

        def val_dataloader(self):
            return [VAL, TEST]

    module = Module()
    assert is_group(module)
    assert done == []
    assert split_up(module) == {"train": TRAIN, "val": VAL, "val 2": TEST}
    assert done[:2] == ["prepare", "fit"]


@pytest.mark.slow
def test_a_lightning_data_module_that_fails_names_its_hook():
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningDataModule):
        def setup(self, stage):
            raise FileNotFoundError("no data here")

    with pytest.raises(TargetError, match=r'^Module\.setup\("fit"\) failed: FileNotFoundError: no data here') as caught:
        split_up(Module())
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(TargetError, match="has no loader to examine"):
        split_up(lightning.LightningDataModule())


@pytest.mark.slow
def test_a_trainer_of_transformers_is_asked_for_its_loaders(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), per_device_train_batch_size=2, use_cpu=True, report_to=[], remove_unused_columns=False
    )
    trainer = transformers.Trainer(
        model=torch.nn.Linear(2, 2), args=arguments, train_dataset=Rows(), eval_dataset={"a": Rows(), "b": Rows()}
    )
    found = split_up(trainer)
    assert list(found) == ["train", "val a", "val b"]
    assert all(isinstance(loader, DataLoader) for loader in found.values())
    subject = Subject(found["train"])
    assert subject.num_samples == 4
    assert {name: tuple(part.shape) for name, part in next(subject.epoch()).items()} == {"x": (2, 2), "labels": (2,)}


@pytest.mark.slow
def test_an_exact_trainer_is_examined_by_the_loader_that_it_was_given(tmp_path):
    transformers = pytest.importorskip("transformers")
    from headrace.loop.huggingface import ExactTrainer

    loader = hr.DataLoader(Rows(), batch_size=2)
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    trainer = ExactTrainer(model=torch.nn.Linear(2, 2), args=arguments, train_loader=loader)
    assert is_group(trainer)
    assert split_up(trainer) == {"train": loader}


@pytest.mark.slow
def test_a_data_set_of_splits_is_a_group():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": [1, 2]})
    found = split_up(datasets.DatasetDict({"validation": rows, "train": rows}))
    assert list(found) == ["train", "val"]
