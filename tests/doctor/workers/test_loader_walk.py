"""Workers that die, hang, or cannot say what went wrong: each walk ends, names the sample, and leaves no process."""

import ctypes
import os
import signal
import threading
import time

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, get_worker_info

from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.walks.loader_walk import LoaderWalk

LOCK = threading.Lock()


class TwoArguments(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")


class Rows(Dataset):
    def __init__(self, at_7=None, num=24):
        self.at_7, self.num = at_7, num

    def __len__(self):
        return self.num

    def __getitem__(self, index):
        if index == 7 and self.at_7 is not None:
            self.at_7()
        return torch.tensor([float(index)]), index


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id, 21, info.num_workers):
            yield torch.tensor([float(number)])


def exit_quietly():
    os._exit(3)


def crash():
    ctypes.string_at(0)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def wait():
    while True:
        time.sleep(60)


def raise_two():
    raise TwoArguments(7, "no such box")


def raise_local():
    class Local(ValueError):
        pass

    raise Local("nobody can send this")


HANG_S = 2.0
"""A worker that goes on shows it within this time, also on a busy machine."""


@pytest.fixture
def walk(tmp_path):
    """Walks once through a loader; returns the pass. Whoever makes a worker hang says how long to wait for it."""
    recorder = FlightRecorder.create()
    before = set(psutil.Process().children(recursive=True))

    def go(loader, *, times=1, patience_s=60.0, max_s=20.0, max_samples=None, **options):
        options = {"num_workers": 2, "is_batched": True, **options}
        with LoaderWalk(loader, Bench(recorder), tmp_path, **options) as held:
            passes = [held.walk(patience_s=patience_s, max_s=max_s, max_samples=max_samples) for _ in range(times)]
        assert set(psutil.Process().children(recursive=True)) <= before
        return passes if times > 1 else passes[0]

    yield go
    recorder.close()


def ended(found):
    return [event["index"] for events in found.journals for event in events if event["at"] == "end"]


def test_every_sample_is_written_down_by_the_worker_that_prepared_it(walk):
    found = walk(DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=2))
    assert (found.outcome, found.num_delivered, found.stop) == ("done", 24, None)
    assert sorted(ended(found)) == list(range(24))
    assert all(events[0]["at"] == "born" for events in found.journals)


@pytest.mark.parametrize(("what", "cause"), [(crash, "SIGSEGV"), (kill, "SIGKILL"), (exit_quietly, "exit status 3")])
def test_a_worker_that_dies_is_named_with_its_sample(walk, what, cause):
    found = walk(DataLoader(Rows(what), batch_size=4, num_workers=2))
    assert found.outcome == "stopped"
    assert (found.stop.kind, found.stop.cause, found.stop.stage, found.stop.indices) == ("died", cause, "sample", (7,))
    assert 6 in found.stop.before
    assert what is not crash or found.stop.at.endswith("in crash")


def test_a_worker_that_hangs_is_named_with_its_sample_and_line(walk):
    found = walk(DataLoader(Rows(wait), batch_size=4, num_workers=2), patience_s=HANG_S)
    assert (found.stop.kind, found.stop.stage, found.stop.indices) == ("stuck", "sample", (7,))
    assert found.stop.at.endswith("in wait")


def test_a_hang_is_waited_for_also_when_time_is_over(walk):
    found = walk(DataLoader(Rows(wait), batch_size=4, num_workers=2), max_s=0.5, patience_s=HANG_S)
    assert found.outcome == "stopped"


def test_hanging_in_collate_names_the_batch(walk):
    def join(samples):
        if any(row == 7 for _, row in samples):
            wait()

    found = walk(DataLoader(Rows(), batch_size=4, num_workers=2), user_collate=join, patience_s=HANG_S)
    assert (found.stop.kind, found.stop.stage, found.stop.indices) == ("stuck", "collate", (4, 5, 6, 7))
    assert found.stop.at.endswith("in wait")


def test_a_lock_that_was_held_at_the_fork(walk):
    def take():
        with LOCK:
            pass

    with LOCK:
        found = walk(DataLoader(Rows(take), batch_size=4, num_workers=2), patience_s=HANG_S)
    assert (found.stop.kind, found.stop.indices) == ("stuck", (7,))
    assert found.stop.at.endswith("in take")


def errors(found):
    return [event for events in found.journals for event in events if event["at"] == "error"]


def test_an_error_is_written_with_its_own_type_and_the_walk_goes_on(walk):
    found = walk(DataLoader(Rows(raise_two), batch_size=4, num_workers=2))
    (error,) = errors(found)
    assert (error["error_type"], error["arrives_as"], error["indices"]) == ("TwoArguments", "RuntimeError", [7])
    assert error["message"] == "7: no such box"
    assert (found.outcome, found.num_errors, found.num_delivered) == ("done", 1, 20)


def test_an_error_that_cannot_be_sent_is_told_from_a_hang(walk):
    found = walk(DataLoader(Rows(raise_local), batch_size=4, num_workers=2), patience_s=HANG_S)
    (error,) = errors(found)
    assert (error["error_type"], error["arrives_as"]) == ("Local", None)
    assert (found.stop.kind, found.stop.stage) == ("stuck", "hand-over")


def test_a_worker_init_fn_that_fails_or_exits(walk):
    def fail(worker):
        raise ValueError("no folder for me")

    def leave(worker):
        os._exit(5)

    found = walk(DataLoader(Rows(), batch_size=4, num_workers=2, worker_init_fn=fail))
    assert {error["stage"] for error in errors(found)} == {"worker_init_fn"}
    found = walk(DataLoader(Rows(), batch_size=4, num_workers=2, worker_init_fn=leave))
    assert (found.stop.kind, found.stop.stage, found.stop.cause) == ("died", "worker_init_fn", "exit status 5")


def test_samples_of_a_subset_are_named_one_by_one(walk):
    found = walk(DataLoader(Subset(Rows(), [7, 9, 11]), batch_size=3, num_workers=2))
    assert sorted(ended(found)) == [0, 1, 2]


def test_a_list_is_walked_too(walk):
    found = walk(DataLoader([torch.tensor(i) for i in range(12)], batch_size=4, num_workers=2))
    assert (found.outcome, found.num_delivered) == ("done", 12)


def test_a_stream_says_where_each_worker_ended(walk):
    found = walk(DataLoader(Stream(), batch_size=4, num_workers=2, drop_last=True))
    assert found.outcome == "done"
    ends = [sum(event["at"] == "end" for event in events) for events in found.journals]
    assert ends == [11, 10]
    assert found.num_delivered == 16
    assert all(any(event["at"] == "exhausted" for event in events) for events in found.journals)


def test_workers_that_stay_write_each_epoch_apart(walk):
    first, second = walk(DataLoader(Rows(), batch_size=4, num_workers=2), times=2, persistent=True)
    assert sorted(ended(first)) == sorted(ended(second)) == list(range(24))
    assert [events[0]["at"] for events in first.journals] == ["born", "born"]
    assert all(event["at"] != "born" for events in second.journals for event in events)


def test_the_loader_itself_is_left_as_it_is(walk):
    loader = DataLoader(Rows(), batch_size=4, num_workers=2, persistent_workers=True)
    before = dict(vars(loader))
    walk(loader, persistent=True)
    assert vars(loader) == before
    assert type(loader.dataset).__getitem__.__qualname__ == "Rows.__getitem__"
    assert not hasattr(type(loader.dataset).__getitem__, "__wrapped__")
