"""A task arrives equal to what plain pickle makes of it; its large parts lie in memory that all workers share."""

import multiprocessing.context
import os
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from headrace.engine.run import parcel, plain_columns
from headrace.engine.run.parcel import Parcel
from headrace.errors import ConfigurationError


class Starting:
    """A process that is being started, as multiprocessing's pickler sees it."""

    def __init__(self):
        self._fds = []

    def duplicate_for_child(self, fd):
        self._fds.append(fd)
        return os.dup(fd)

    def DupFd(self, fd):
        return Handle(fd)


class Handle:
    def __init__(self, fd):
        self.fd = fd

    def detach(self):
        return self.fd


def send(sent, starting=None):
    """What a starting process is given of a parcel."""
    multiprocessing.context.set_spawning_popen(starting or Starting())
    try:
        return bytes(ForkingPickler.dumps(sent, 5))
    finally:
        multiprocessing.context.set_spawning_popen(None)


def travel(task):
    return pickle.loads(send(Parcel(task, method="spawn"))).open()


@pytest.fixture(scope="module", autouse=True)
def short_lists_count_as_long():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_columns, "LEAST_LENGTH", 4)
        patch.setattr(plain_columns, "_LOOKED_AT", 4)
        patch.setattr(plain_columns, "_CHUNK_LENGTH", 3)
        patch.setattr(parcel, "LEAST_LENGTH", 4)
        patch.setattr(parcel, "_LEAST_BYTES", 8)
        yield


class Text(str):
    __slots__ = ()


TEXT = st.text(st.characters() | st.sampled_from("\0\n\x1f\t\ud800\udfff"), max_size=5)
PLAIN = [TEXT, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)]
ODD = [st.none(), st.booleans(), st.binary(max_size=3), st.integers(), TEXT.map(Text), st.lists(TEXT, max_size=2)]
ROWS = st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3).flatmap(lambda kinds: st.tuples(*kinds))
ELEMENTS = st.sampled_from([*PLAIN, ROWS, st.one_of(*PLAIN), *ODD, ROWS | TEXT])
LISTS = ELEMENTS.flatmap(lambda element: st.lists(element, max_size=9))
DICTS = ELEMENTS.flatmap(lambda element: st.dictionaries(TEXT, element, max_size=9))
TASKS = st.recursive(
    LISTS | LISTS.map(tuple) | DICTS, lambda inner: st.dictionaries(TEXT, inner, max_size=4), max_leaves=4
)


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and repr(a) == repr(b)  # the text tells 0.0 from -0.0


@given(TASKS)
def test_any_task_arrives_as_by_plain_pickle(task):
    assert same(travel(task), pickle.loads(pickle.dumps(task, 5)))


@given(LISTS)
def test_columns_mean_the_list_or_are_not_made(values):
    packed = plain_columns.pack_columns(values)
    assert packed is None or same(unpacked(packed), values)


def unpacked(packed):
    return plain_columns.unpack_columns(pickle.loads(pickle.dumps(packed, 5)))


@pytest.mark.parametrize(
    "values",
    [
        [f"/data/{k}" for k in range(9)],
        tuple(str(k) * 3 for k in range(9)),
        [(f"/data/{k}", k) for k in range(9)],
        [k / 7 for k in range(9)],
        {f"/data/{k}": k for k in range(9)},
    ],
)
def test_what_data_sets_hold_goes_as_columns(values):
    assert same(unpacked(plain_columns.pack_columns(values)), values)


def test_a_list_of_the_same_few_objects_stays_one():
    labels = [f"label {k}" for k in range(2)] * 9
    assert plain_columns.pack_columns(labels) is None
    assert len(set(map(id, travel(labels)))) == 2


def test_a_list_that_is_held_twice_stays_one():
    paths = [f"/data/{k}" for k in range(9)]
    arrived = travel({"samples": paths, "also": [paths, paths], "other": list(paths)})
    assert arrived["samples"] is arrived["also"][0] is arrived["also"][1]
    assert arrived["samples"] == arrived["other"]
    assert arrived["samples"] is not arrived["other"]


class Fresh:
    """Pickles to a list that exists only meanwhile, so that the next one may lie at the same address."""

    def __init__(self, number):
        self.number = number

    def __getstate__(self):
        return {"texts": [f"{self.number}/{k}" for k in range(9)]}


def test_lists_that_exist_only_while_they_are_pickled_are_told_apart():
    arrived = travel([Fresh(number) for number in range(50)])
    assert [part.texts[0] for part in arrived] == [f"{number}/0" for number in range(50)]


@pytest.mark.parametrize("can_write", [True, False])
def test_arrays_and_tensors_arrive_equal_and_as_writable_as_they_were(can_write):
    array = np.arange(1000)
    array.flags.writeable = can_write
    arrived = travel({"array": array, "tensor": torch.arange(1000), "empty": np.empty((0, 3))})
    assert arrived["array"].flags.writeable is can_write
    assert arrived["array"].tolist() == arrived["tensor"].tolist() == list(range(1000))
    assert arrived["empty"].shape == (0, 3)


def test_all_workers_map_one_file_and_what_one_writes_no_other_sees():
    sent = Parcel({"array": np.zeros(1000)}, method="spawn")
    one, two = (pickle.loads(send(sent)).open()["array"] for _ in range(2))
    one[:] = 1
    assert one.sum() == 1000
    assert two.sum() == 0


class Counted:
    num_pickled = 0

    def __getstate__(self):
        Counted.num_pickled += 1
        return {}


def test_a_task_is_pickled_once_for_all_workers():
    Counted.num_pickled = 0
    sent = Parcel(Counted(), method="spawn")
    assert len({len(send(sent)) for _ in range(3)}) == 1
    assert Counted.num_pickled == 1


def test_a_task_that_passes_descriptors_on_is_pickled_for_each_process():
    reader, writer = multiprocessing.Pipe()
    with reader, writer:
        sent = Parcel({"pipe": writer, "counted": Counted()}, method="spawn")
        Counted.num_pickled = 0
        startings = [Starting(), Starting()]
        for starting in startings:
            with pickle.loads(send(sent, starting)).open()["pipe"]:
                pass
        assert Counted.num_pickled == 2
        assert all(writer.fileno() in starting._fds for starting in startings)


def test_without_room_for_a_file_the_task_goes_through_the_pipe(monkeypatch):
    def no_room(name):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parcel, "nameless_file", no_room)
    task = {"array": np.arange(1000), "paths": [f"/data/{k}" for k in range(9)]}
    arrived = travel(task)
    assert arrived["paths"] == task["paths"]
    assert arrived["array"].tolist() == task["array"].tolist()


def test_descriptors_are_given_back():
    def open_files():
        return sorted(Path("/proc/self/fd").iterdir())

    before = open_files()
    sent = Parcel({"array": np.arange(1000)}, method="spawn")
    arrived = pickle.loads(send(sent)).open()
    del sent, arrived
    assert open_files() == before


def test_what_does_not_pickle_is_named():
    with pytest.raises(ConfigurationError, match=r"^task\['stage'\] \(function .*<lambda>"):
        travel({"paths": [f"/data/{k}" for k in range(9)], "stage": lambda sample: sample})
