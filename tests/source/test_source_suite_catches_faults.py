"""The exam of the exam: a source with one fault fails the law that it breaks, and a sound one passes all of them."""

import random

import numpy as np
import pytest

from headrace.testing.sources import SourceSuite, is_equal

EXPECTED = {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}


class Sound:
    runs_user_code = False

    def __len__(self):
        return 3

    def read_many(self, indices):
        return [{"x": int(index) + 1} for index in indices]

    def sample_id(self, index):
        return "abc"[index]

    def locate(self, index):
        return None

    def fingerprint(self):
        return "three"


class Short(Sound):
    def __len__(self):
        return 2


class Sorting(Sound):
    def read_many(self, indices):
        return super().read_many(sorted(indices))


class Shared(Sound):
    def __init__(self):
        self.record = {}

    def read_many(self, indices):
        for index in indices:
            self.record["x"] = int(index) + 1
        return [self.record for _ in indices]


class NumpyIds(Sound):
    def sample_id(self, index):
        return np.int64(index)


class RepeatedIds(Sound):
    def sample_id(self, index):
        return "a"


class Drawing(Sound):
    def read_many(self, indices):
        random.random()
        return super().read_many(indices)


class Drifting(Sound):
    def fingerprint(self):
        return str(random.random())


class Unpicklable(Sound):
    def __reduce__(self):
        raise TypeError("cannot pickle")


class LocatesNothing(Sound):
    def locate(self, index):
        return index


class NotASource:
    runs_user_code = False


LAWS = [name for name in dir(SourceSuite) if name.startswith("test_")]
TAKES_SOURCE_ALONE = {
    "test_satisfies_the_protocol",
    "test_ids_are_unique_and_fit_into_json",
    "test_no_rows_give_no_records",
    "test_locate_is_text_or_none",
    "test_fingerprint_is_short_and_stable",
    "test_own_code_leaves_global_generators_alone",
}


def sit(law, source):
    getattr(SourceSuite(), law)(source, *([] if law in TAKES_SOURCE_ALONE else [EXPECTED]))


@pytest.mark.parametrize("law", LAWS)
def test_a_sound_source_passes(law):
    sit(law, Sound())


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Short, "test_length_is_the_number_of_records"),
        (Sorting, "test_many_rows_come_as_asked"),
        (Shared, "test_reading_again_gives_the_same"),
        (NumpyIds, "test_ids_are_unique_and_fit_into_json"),
        (RepeatedIds, "test_ids_are_unique_and_fit_into_json"),
        (RepeatedIds, "test_ids_come_in_the_expected_order"),
        (Drawing, "test_own_code_leaves_global_generators_alone"),
        (Drifting, "test_fingerprint_is_short_and_stable"),
        (Unpicklable, "test_survives_pickling"),
        (LocatesNothing, "test_locate_is_text_or_none"),
        (NotASource, "test_satisfies_the_protocol"),
    ],
)
def test_a_fault_is_caught(kind, law):
    with pytest.raises((AssertionError, TypeError)):
        sit(law, kind())


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        ([np.zeros(2)], [np.ones(2)]),
    ],
)
def test_records_of_other_type_order_or_shape_are_not_equal(a, b):
    assert is_equal(a, a)
    assert not is_equal(a, b)
