"""Batches that are not of one structure are named, and targets that are no class; healthy ones are passed over in silence."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import torch
from tests.loop.test_sanity import small
from torch import nn
from torch.nn.utils.rnn import pack_sequence

import headrace as hr
from headrace.errors import LoopWarning
from headrace.loop.alike import batch_faults


class Pair(NamedTuple):
    x: torch.Tensor
    meta: list


@dataclasses.dataclass
class Both:
    x: torch.Tensor
    names: list


class Classes:
    def __init__(self, num):
        self.classes = [str(one) for one in range(num)]


def images(num=8, size=16, dtype=torch.float32, channels=3):
    return torch.zeros(num, channels, size, size, dtype=dtype)


def labels(*values):
    return torch.tensor(values)


HEALTHY = {
    "the same": ([images(), labels(0, 1)], [images(), labels(2, 3)]),
    "a smaller last batch": ([images(8), torch.zeros(8)], [images(3), torch.zeros(3)]),
    "text padded to the longest of its batch": (
        {"tokens": torch.zeros(8, 31, dtype=torch.long), "mask": torch.ones(8, 31, dtype=torch.bool)},
        {"tokens": torch.zeros(8, 12, dtype=torch.long), "mask": torch.ones(8, 12, dtype=torch.bool)},
    ),
    "sound padded, with features": ({"x": torch.zeros(4, 100, 40)}, {"x": torch.zeros(4, 70, 40)}),
    "sound padded": ({"x": torch.zeros(4, 16000)}, {"x": torch.zeros(4, 900)}),
    "pictures in buckets": ([images(4, 16)], [images(2, 32)]),
    "squares of attention": ({"mask": torch.zeros(4, 7, 7)}, {"mask": torch.zeros(4, 9, 9)}),
    "graphs: nodes, edges, targets": (
        {"x": torch.zeros(31, 5), "edges": torch.zeros(2, 80, dtype=torch.long), "y": torch.zeros(4)},
        {"x": torch.zeros(17, 5), "edges": torch.zeros(2, 44, dtype=torch.long), "y": torch.zeros(4)},
    ),
    "names of the samples": ({"x": torch.zeros(4), "name": list("abcd")}, {"x": torch.zeros(2), "name": list("ef")}),
    "text in arrays": ({"name": np.array(["a", "bcd"])}, {"name": np.array(["efghij"])}),
    "boxes of each sample": (
        (images(2), [{"boxes": torch.zeros(3, 4)}, {"boxes": torch.zeros(1, 4), "crowd": True}]),
        (images(1), [{"boxes": torch.zeros(0, 4)}]),
    ),
    "samples that were not joined": ([{"x": 1}, {"x": 2, "y": 3}], [{"x": 1}, {"x": 2}]),
    "pictures that were not joined": ([torch.zeros(3, 8, 8)] * 3, [torch.zeros(3, 9, 9)] * 2),
    "pairs that were not joined": ([(torch.zeros(3), 1)] * 3, [(torch.zeros(4), 1)] * 3),
    "one tensor": (torch.zeros(4, 3), torch.zeros(2, 3)),
    "numbers of a batch": ({"weight": 1}, {"weight": 0.5}),
    "a named tuple": (Pair(torch.zeros(2), ["a", None]), Pair(torch.zeros(3), [])),
    "a dataclass": (Both(torch.zeros(2), ["a"]), Both(torch.zeros(3), [])),
    "packed sequences": (
        pack_sequence([torch.zeros(3, 5), torch.zeros(2, 5)]),
        pack_sequence([torch.zeros(7, 5)]),
    ),
    "a class of its own": (object(), object()),
    "nothing": ({}, {}),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_healthy_batches_are_silent(case):
    one, two = HEALTHY[case]
    assert batch_faults([one, two], Classes(10)) == []
    assert batch_faults([two, one], None) == []
    assert batch_faults([one], Classes(10)) == []


SICK = {
    "an axis lost": (
        {"y": torch.zeros(8, 1)},
        {"y": torch.zeros(8)},
        "field y is a tensor float32 (8, 1) in one batch and a tensor float32 (8,) in the next: another number of axes.",
    ),
    "a batch of one, squeezed": (
        [images(8), torch.zeros(8)],
        [images(1)[0], torch.zeros(1)],
        "field 0 is a tensor float32 (8, 3, 16, 16) in one batch and a tensor float32 (3, 16, 16) in the next: another number of axes.",
    ),
    "labels that become floats": (
        {"x": images(), "y": torch.zeros(8, dtype=torch.long)},
        {"x": images(), "y": torch.zeros(8, dtype=torch.float64)},
        "field y is a tensor int64 (8,) in one batch and a tensor float64 (8,) in the next: another dtype.",
    ),
    "bytes in one": (
        [images()],
        [images(dtype=torch.uint8)],
        "field 0 is a tensor float32 (8, 3, 16, 16) in one batch and a tensor uint8 (8, 3, 16, 16) in the next: another dtype.",
    ),
    "not joined in one": (
        {"x": torch.zeros(2, 3)},
        {"x": [torch.zeros(3), torch.zeros(4)]},
        "field x is a tensor float32 (2, 3) in one batch and a list in the next: another kind of value.",
    ),
    "an array in one": (
        {"a": {"x": torch.zeros(2, 3)}},
        {"a": {"x": np.zeros((2, 3), np.float32)}},
        "field a.x is a tensor float32 (2, 3) in one batch and an array float32 (2, 3) in the next: another kind of value.",
    ),
    "none in one": (
        {"w": torch.zeros(2)},
        {"w": None},
        "field w is a tensor float32 (2,) in one batch and None in the next: another kind of value.",
    ),
    "a key gone": (
        {"x": torch.zeros(2), "mask": torch.ones(2)},
        {"x": torch.zeros(2)},
        "field mask is missing in the second of two batches, and the other one has it",
    ),
    "a key come": (
        {"x": torch.zeros(2)},
        {"x": torch.zeros(2), "mask": torch.ones(2)},
        "field mask is missing in the first of two batches, and the other one has it",
    ),
}


@pytest.mark.parametrize("case", SICK)
def test_what_is_not_alike_is_named_with_field_and_difference(case):
    one, two, words = SICK[case]
    (found,) = batch_faults([one, two], None)
    assert found.startswith(words)


def test_targets_outside_the_classes_are_named_in_either_batch():
    right, off = {"x": images(4), "label": labels(0, 1, 2, 9)}, {"x": images(4), "label": labels(1, 2, 3, 10)}
    words = "field label: expected values in 0..9 (10 classes), found 10. Targets begin at 0"
    assert batch_faults([right, off], Classes(10)) == [words]
    assert batch_faults([off, right], Classes(10)) == [words]
    assert batch_faults([off], Classes(10)) == [words]
    assert batch_faults([off, off], torch.utils.data.Subset(Classes(10), [0])) == [words]
    assert batch_faults([off, off], Classes(11)) == []
    assert batch_faults([off, off], None) == []


def test_the_last_numbers_of_pairs_are_targets():
    (found,) = batch_faults([[images(3), labels(0, 1, -3)]] * 2, Classes(4))
    assert found == "field 1: expected values in 0..3 (4 classes), found -3. Targets begin at 0"


@pytest.mark.parametrize(
    "values",
    [
        (0, 1, -100, 3),  # torch's losses leave it out
        (0, 1, 255, 255),  # borders
        (-1, -1, 2, 3),
        (31, 17, 25, 1),  # finer classes than those that the data set speaks of
    ],
)
def test_marks_and_other_targets_are_no_fault(values):
    assert batch_faults([{"label": labels(*values)}] * 2, Classes(4)) == []


def test_numbers_that_are_no_targets_may_be_what_they_like():
    batch = {"index": labels(70, 0), "tokens": labels(1000, 1), "y": torch.tensor([0.5, 99.0])}
    assert batch_faults([batch] * 2, Classes(4)) == []


class Rows(Classes):
    def __init__(self, num_classes, odd=None):
        super().__init__(num_classes)
        self.odd = odd

    def __len__(self):
        return 32

    def __getitem__(self, row):
        return torch.randn(6), (row % 2 if row != self.odd else 7)


def trained(folder, loader, body):
    net = small()
    loop = hr.Loop(net, torch.optim.SGD(net.parameters(), 0.01), train=loader, epochs=1, folder=folder, evaluate=None)
    for step in loop:
        step.update(body(net, step.batch))
    loop.close()


def mean_square(net, batch):
    x, y = batch
    return (net(x.float())[:, 0] - y.reshape(-1)).square().mean()


@pytest.mark.parametrize("make", [torch.utils.data.DataLoader, hr.DataLoader])
def test_a_run_over_healthy_batches_begins_in_silence(tmp_path, make):
    trained(tmp_path, make(Rows(2), 7), mean_square)  # warnings are errors here


def test_a_run_is_warned_of_batches_that_are_not_alike(tmp_path):
    def collate(samples, batches=iter(range(100))):
        x, y = torch.utils.data.default_collate(samples)
        return x, y[:, None] if next(batches) % 2 else y

    loader = torch.utils.data.DataLoader(Rows(2), 8, collate_fn=collate)
    with pytest.warns(LoopWarning, match=r"^field 1 is a tensor int64 \(8,\) in one batch and a tensor int64 \(8, 1\)"):
        trained(tmp_path, loader, mean_square)


def test_a_body_that_fails_on_a_target_leaves_the_warning_that_says_why(tmp_path):
    loader = torch.utils.data.DataLoader(Rows(2, odd=3), 8)
    with (
        pytest.warns(LoopWarning, match=r"^field 1: expected values in 0\.\.1 \(2 classes\), found 7"),
        pytest.raises(IndexError, match="out of bounds"),
    ):
        trained(tmp_path, loader, lambda net, batch: nn.functional.cross_entropy(net(batch[0]), batch[1]))
