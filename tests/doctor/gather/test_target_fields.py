"""Targets are known by name, or as the number in second place; nothing else is taken for one."""

import numpy as np
import pytest

from headrace.contract.view import view_sample
from headrace.doctor.evidence import SampleRead
from headrace.doctor.probes.targets import find_targets

IMAGE = np.zeros((3, 4, 4), np.float32)


def reads(*samples):
    return [
        SampleRead(index=i, sample_id=i, path=None, outcome="ok", stage="done", fields=view_sample(sample))
        for i, sample in enumerate(samples)
    ]


@pytest.mark.parametrize(
    ("sample", "targets"),
    [
        ((IMAGE, 3), ("1",)),
        ((IMAGE, np.int64(3)), ("1",)),
        ((IMAGE, np.array([1, 0, 1])), ("1",)),
        ((IMAGE, IMAGE), ()),
        ((IMAGE, 0.5), ()),
        ((IMAGE, "cat"), ()),
        ((IMAGE, True), ()),
        ((IMAGE, 3, 4), ()),
        (({"a": IMAGE, "b": IMAGE}, 3), ("1",)),
        ({"image": IMAGE, "label": 1.5}, ("label",)),
        ({"x": IMAGE, "Y": 2}, ("Y",)),
        ((IMAGE, {"boxes": IMAGE[0], "labels": np.array([1, 2])}), ("1.labels",)),
        ({"image": IMAGE, "mask": IMAGE[0].astype(np.uint8)}, ("mask",)),
        ({"ids": np.arange(5), "mask": np.ones(5, np.int64)}, ()),
        ({"image": IMAGE, "label": "cat"}, ()),
        (IMAGE, ()),
    ],
)
def test_targets_are_found(sample, targets):
    assert find_targets(reads(sample, sample), knows_classes=False) == targets


def test_a_whole_float_is_a_class_only_if_classes_are_known_and_all_are_whole():
    assert find_targets(reads((IMAGE, 1.0), (IMAGE, 2.0)), knows_classes=True) == ("1",)
    assert find_targets(reads((IMAGE, 1.0), (IMAGE, 2.5)), knows_classes=True) == ()
    assert find_targets(reads((IMAGE, 1.0)), knows_classes=False) == ()


def test_one_sample_of_another_form_takes_the_second_place_away():
    assert find_targets(reads((IMAGE, 1), IMAGE), knows_classes=True) == ()
    assert find_targets([], knows_classes=True) == ()
