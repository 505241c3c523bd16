"""Killed workers, damaged and half-written entries, full disks: nothing wrong is read, nothing is lost or left behind."""

import errno
import os
import resource

import numpy as np
import pytest
from cache_pupils import NUM_FILES, die_once, plan_of

import headrace as hr
from headrace.engine.cache.entry import MISS, decode, encode
from headrace.engine.cache.memory import MemoryStore
from headrace.engine.cache.packing import pack
from headrace.errors import WorkerDied

STAMP = bytes(16)


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "usage")


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_killed_worker_leaves_nothing_that_is_read(root, tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HEADRACE_TEST_FLAG", str(tmp_path / "died"))
    folder = tmp_path / "kept"
    plan = plan_of(root).map(die_once).cache(max_bytes=10**6, where=kind if kind == "memory" else folder)
    loader = hr.DataLoader(plan, batch_size=2, num_workers=2, multiprocessing_context="fork")
    with pytest.raises(WorkerDied):
        list(loader)
    names = [name for _ in range(2) for batch in hr.DataLoader(plan, batch_size=2) for name in batch["name"]]
    assert names == [plan.sample_id(index) for index in range(NUM_FILES)] * 2
    if kind == "folder":
        assert len(files_below(folder)) == NUM_FILES


def test_an_entry_cut_or_changed_anywhere_is_no_entry():
    sample = {"x": np.arange(7, dtype=np.int16), "s": "text"}
    entry = encode(pack(sample), STAMP)
    assert decode(entry, STAMP)["s"] == "text"
    assert decode(entry, b"other stamp 1234") is MISS
    used = [place for place in range(entry.nbytes) if entry[place] or place < 40]
    for place in used:
        damaged = entry.copy()
        damaged[place] ^= 0x55
        assert decode(damaged, STAMP) is MISS, place
    for size in range(0, entry.nbytes, 7):
        assert decode(entry[:size], STAMP) is MISS


def test_a_place_without_its_entry_is_a_miss():
    store = MemoryStore(3, 10_000)
    store._index[1] = store._begin  # a writer that was killed, had the two stores come out of order
    assert store.get(1, 1, STAMP) is MISS
    assert store.put(1, 1, encode(pack(5), STAMP))
    assert store.get(1, 1, STAMP) == 5


def test_a_damaged_file_is_made_anew(root, tmp_path, counter):
    folder = tmp_path / "kept"
    plan = plan_of(root, counter).cache(max_bytes=10**6, where=folder)
    expected = plan[0]["x"].tolist()
    (path,) = files_below(folder)
    path.write_bytes(path.read_bytes()[:-3])
    assert plan[0]["x"].tolist() == expected
    assert plan[0]["x"].tolist() == expected
    assert counter.stat().st_size == 2


def test_a_folder_that_was_deleted_meanwhile_is_made_again(root, tmp_path):
    import shutil

    folder = tmp_path / "kept"
    plan = plan_of(root).cache(max_bytes=10**6, where=folder)
    plan[0]
    for stages in folder.iterdir():
        if stages.is_dir():
            shutil.rmtree(stages)
    assert plan[0]["x"].tolist() == plan[0]["x"].tolist()
    assert len(files_below(folder)) == 1


@pytest.mark.parametrize("is_nameless", [True, False])
def test_a_full_disk_ends_keeping_with_one_warning(root, tmp_path, monkeypatch, is_nameless):
    if not is_nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    folder = tmp_path / "kept"
    plan = plan_of(root).cache(max_bytes=10**6, where=folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    plan[0]
    import signal

    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file over the limit then fails as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.warns(UserWarning, match="keeps no further samples in this process: .* Loading goes on") as warned:
            names = [plan[index]["name"] for index in range(len(plan))]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert len(warned) == 1
    assert names == [plan.sample_id(index) for index in range(len(plan))]
    assert len(files_below(folder)) == 1
    assert plan.source.usage() == (1, files_below(folder)[0].stat().st_size)


def test_without_nameless_files_a_temporary_one_is_renamed(root, tmp_path, monkeypatch, counter):
    monkeypatch.delattr(os, "O_TMPFILE")
    plan = plan_of(root, counter).cache(max_bytes=10**6, where=tmp_path / "kept")
    assert plan[0]["name"] == plan[0]["name"]
    assert counter.stat().st_size == 1


def test_when_the_bound_is_reached_the_rest_is_loaded_each_time(root, tmp_path, counter):
    sizes = [encode(pack(plan_of(root)[index]), STAMP).nbytes for index in range(5)]
    assert len(set(sizes)) == 1
    size = sizes[0]
    for where in ("memory", tmp_path / "kept"):
        before = counter.stat().st_size
        plan = plan_of(root, counter).cache(max_bytes=3 * size, where=where)
        for _ in range(2):
            for index in range(5):
                plan[index]
        assert plan.source.usage() == (3, 3 * size)
        assert counter.stat().st_size - before == 5 + 2


def test_an_error_of_the_disk_while_reading_is_a_miss(root, tmp_path, monkeypatch):
    plan = plan_of(root).cache(max_bytes=10**6, where=tmp_path / "kept")
    expected = plan[0]["x"].tolist()

    def fails(*arguments, **others):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(np, "fromfile", fails)
    assert plan[0]["x"].tolist() == expected
