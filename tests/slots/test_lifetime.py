"""A batch is never overwritten while any view of it lives, whatever else ends meanwhile."""

import gc
import os
import random
import signal
import threading

import numpy as np
import psutil
import pytest
import torch
from slot_acts import is_whole, kill_self, make_batch

from headrace.engine.run import ProcessRunner, slots_forks
from headrace.engine.run.slots import SlotTransport
from headrace.errors import ConfigurationError, WorkerDied
from headrace.testing import nothing_left
from headrace.testing.tasks import Act, ActTask

SIZE = 1 << 20


@pytest.fixture(autouse=True)
def _leaves_nothing():
    with nothing_left():
        yield


def acts(num):
    return [Act(do=make_batch, value=value) for value in range(num)]


def runner(num_workers=2, **options):
    return ProcessRunner(num_workers, context="fork", transport=SlotTransport(**options))


def overwrite(pair, times=10):
    """Gives every free slot other bytes; returns nothing that it held."""
    for _ in range(times):
        pair.travel(np.full(SIZE, 255, np.uint8))


VIEWS = {
    "the tensor": lambda batch: batch["x"],
    "a slice": lambda batch: batch["x"][3:5],
    "a reshaped slice": lambda batch: batch["x"][2:].reshape(-1)[5:].view(-1, 1).T,
    "another dtype": lambda batch: batch["x"].view(torch.float64),
    "its numpy": lambda batch: batch["x"].numpy(),
    "a slice of its numpy": lambda batch: batch["x"].numpy()[1:][::2],
    "detached": lambda batch: batch["x"].detach(),
    "its storage": lambda batch: batch["x"].untyped_storage(),
    "a row in a list": lambda batch: list(batch["x"])[7],
    "dlpack": lambda batch: torch.from_dlpack(batch["x"]),
    "the array": lambda batch: batch["a"],
    "a tensor of the array": lambda batch: torch.from_numpy(batch["a"])[2:],
    "a view of a view": lambda batch: batch["a"][1:].reshape(-1)[3:].view("i8")[::3].T,
    "a memoryview": lambda batch: memoryview(batch["a"])[5:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_any_view_keeps_the_batch_and_the_last_gives_it_back(view, make_pair):
    pair = make_pair()
    batch = pair.travel({"x": torch.ones(16, SIZE // 128, dtype=torch.float64), "a": np.ones((16, SIZE // 128))})
    kept = view(batch)
    before = bytes(kept) if isinstance(kept, torch.UntypedStorage) else np.asarray(kept).tobytes()
    del batch
    overwrite(pair)
    assert (bytes(kept) if isinstance(kept, torch.UntypedStorage) else np.asarray(kept).tobytes()) == before
    assert slots_forks.held
    del kept
    assert not slots_forks.held


def test_a_batch_in_a_cycle_comes_back_with_the_collector(make_pair):
    pair = make_pair()
    cycle = [pair.travel(np.ones(SIZE))]
    cycle.append(cycle)
    del cycle
    assert slots_forks.held
    gc.collect()
    assert not slots_forks.held


def test_slots_come_back_from_any_thread(make_pair):
    pair = make_pair(max_in_flight=3)
    for _ in range(30):
        batch = [pair.travel(np.ones(SIZE))]
        assert pair.num_in_pipe < SIZE
        thread = threading.Thread(target=batch.clear)
        thread.start()
        thread.join()


@pytest.mark.parametrize("limit", [None, 20_000_000])
def test_any_number_of_batches_may_be_kept_for_ever(limit):
    kept = list(runner(memory_limit=limit).run(ActTask(), acts(60)))
    assert [batch["value"] for batch in kept] == list(range(60))
    assert all(map(is_whole, kept))


@pytest.mark.slow
def test_batches_dropped_at_random_disturb_no_other():
    rng = random.Random(0)
    kept = []
    for batch in runner().run(ActTask(), acts(150)):
        kept.append(batch)
        if rng.random() < 0.7:
            dropped = kept.pop(rng.randrange(len(kept)))
            assert is_whole(dropped)
    assert all(map(is_whole, kept))


def test_a_batch_outlives_the_run_the_runner_and_the_workers():
    first, *_, last = runner().run(ActTask(), acts(9))
    results = runner().run(ActTask(), acts(9))
    broken_off = next(results)
    results.close()
    with pytest.raises(WorkerDied):
        for batch in runner(1).run(ActTask(), [*acts(3), Act(do=kill_self)]):
            killed = batch
    gc.collect()
    assert all(map(is_whole, (first, last, broken_off, killed)))
    killed["image"] += 1


def test_a_limit_that_cannot_work_is_raised_in_the_loop():
    with pytest.raises(ConfigurationError, match=r"^memory_limit=100,000 bytes does not hold the batches in flight"):
        list(runner(memory_limit=100_000).run(ActTask(), acts(3)))


# ---- memory and descriptors -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_descriptors_and_mappings_do_not_grow_over_a_thousand_batches():
    process, kept, seen = psutil.Process(), [], []
    for number, batch in enumerate(runner().run(ActTask(), acts(1000))):
        kept = [*kept[-3:], batch]
        if number in (100, 999):
            seen.append((process.num_fds(), len(process.memory_maps(grouped=False))))
    (fds, maps), (fds_later, maps_later) = seen
    assert fds_later == fds
    assert maps_later <= maps + 20  # the allocator's own come and go


def test_kept_batches_of_many_pools_hold_no_descriptor_and_no_more_memory_than_theirs():
    process, kept = psutil.Process(), []
    before = process.num_fds()
    for _ in range(5):
        kept.append(next(iter(list(runner().run(ActTask(), acts(9))))))
    assert process.num_fds() == before
    assert slot_memory() < 3 * sum(len(batch["image"]) + batch["mask"].nbytes for batch in kept)
    assert all(map(is_whole, kept))
    kept.clear()
    assert slot_memory() == 0


def slot_memory():
    """Bytes of slots that this process has mapped and touched."""
    maps = psutil.Process().memory_maps(grouped=False)
    return sum(part.rss for part in maps if "headrace-slots" in part.path)


# ---- forks ----------------------------------------------------------------------------------------------------------


def fork(child):
    """Runs a function in a forked child, which goes on when `go` is written to; returns (pid, go)."""
    go_read, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(go)
            os.read(go_read, 1)
            status = 0 if child() else 2
        finally:
            os._exit(status)
    os.close(go_read)
    return pid, go


def finish(pid, go):
    os.close(go)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_keeps_what_its_parent_drops_and_the_slot_comes_back_after_it(make_pair):
    pair = make_pair(max_in_flight=3)
    batch = pair.travel(np.full(SIZE, 7, np.uint8))
    address = batch.ctypes.data
    held = [batch]
    child = fork(lambda: bool((held[0] == 7).all()))
    del batch, held[:]
    later = [pair.travel(np.full(SIZE, value, np.uint8)) for value in range(20)]
    assert address not in {array.ctypes.data for array in later}
    later.clear()
    overwrite(pair)
    assert finish(*child) == 0
    assert pair.travel(np.ones(SIZE, np.uint8)).ctypes.data  # the consumer looks whether children have ended
    assert pair.travel(np.ones(SIZE, np.uint8)).ctypes.data == address


def test_what_a_forked_child_drops_is_still_its_parents(make_pair):
    pair = make_pair(max_in_flight=3)
    held = [pair.travel(np.full(SIZE, 7, np.uint8))]

    def child():
        held.clear()
        gc.collect()
        return True

    assert finish(*fork(child)) == 0
    overwrite(pair)
    assert (held[0] == 7).all()


def test_a_grandchild_keeps_it_too(make_pair):
    pair = make_pair(max_in_flight=3)
    batch = pair.travel(np.full(SIZE, 7, np.uint8))
    go_read, go = os.pipe()
    told_read, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:  # outlives its parent
            os.close(go)
            os.read(go_read, 1)
            os.write(told, b"y" if (batch == 7).all() else b"n")
        os._exit(0)
    os.waitpid(pid, 0)
    del batch
    overwrite(pair, 20)
    os.close(go)
    os.close(told)
    assert os.read(told_read, 1) == b"y"
    for end in (go_read, told_read):
        os.close(end)
    while slots_forks.held:
        pair.travel(b"")  # the grandchild ends now


def test_a_batch_received_after_the_fork_is_no_child_s(make_pair):
    pair = make_pair(max_in_flight=3)
    before = pair.travel(np.full(SIZE, 7, np.uint8))
    child = fork(lambda: True)
    addresses = {pair.travel(np.ones(SIZE, np.uint8)).ctypes.data for _ in range(9)}
    assert len(addresses) == 1
    assert finish(*child) == 0
    del before


def test_a_child_killed_and_the_pool_ended_leave_nothing(make_pair):
    pair = make_pair()
    batch = pair.travel(np.full(SIZE, 7, np.uint8))
    pid, go = fork(lambda: True)
    pair.close()
    assert (batch == 7).all()
    os.kill(pid, signal.SIGKILL)
    finish(pid, go)
    del batch
    assert not slots_forks.held


def test_many_short_children_leave_no_descriptors(make_pair):
    pair = make_pair()
    batch = pair.travel(np.ones(SIZE))
    before = psutil.Process().num_fds()
    for _ in range(20):
        finish(*fork(lambda: True))
    assert psutil.Process().num_fds() <= before + 1  # the last one is noticed with the next fork or batch
    del batch


def test_where_no_pipe_can_be_made_the_slot_is_lost_and_no_byte(make_pair, monkeypatch):
    pair = make_pair(max_in_flight=3)
    batch = pair.travel(np.full(SIZE, 7, np.uint8))
    ends = os.pipe

    def no_more_descriptors():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(slots_forks.os, "pipe", no_more_descriptors)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    monkeypatch.setattr(slots_forks.os, "pipe", ends)
    os.waitpid(pid, 0)
    address = batch.ctypes.data
    del batch
    assert address not in {pair.travel(np.ones(SIZE, np.uint8)).ctypes.data for _ in range(9)}
    slots_forks._fences.clear()
