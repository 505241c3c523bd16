"""What a process and those below it have used."""

import multiprocessing
import os
import sys
import time

import pytest

from headrace.doctor.timing.usage import Usage

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
COMPUTED_S = 0.3


def compute():
    """Computes for a while by this process's own clock, whatever else the machine does."""
    end = time.process_time() + COMPUTED_S
    while time.process_time() < end:
        pass


def compute_and_stay(ready, end):
    compute()
    ready.set()
    end.wait()


def test_own_work_is_own():
    before = Usage.now()
    compute()
    after = Usage.now()
    assert after.own_cpu_s - before.own_cpu_s >= COMPUTED_S
    assert after.below_cpu_s - before.below_cpu_s < COMPUTED_S / 3


def test_work_of_children_counts_while_they_live_and_after():
    context = multiprocessing.get_context("fork")
    before = Usage.now()
    ready, end = context.Event(), context.Event()
    child = context.Process(target=compute_and_stay, args=(ready, end))
    child.start()
    ready.wait()
    living = Usage.now()
    end.set()
    child.join()
    ended = Usage.now()
    for after in (living, ended):
        assert COMPUTED_S * 0.9 <= after.below_cpu_s - before.below_cpu_s < 2 * COMPUTED_S


def read_file(path):
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


@linux_only
def test_bytes_read_count_also_of_children_that_have_ended(tmp_path):
    path = tmp_path / "data"
    size = 8 << 20
    path.write_bytes(os.urandom(size))
    before = Usage.now()
    read_file(path)
    own = Usage.now()
    child = multiprocessing.get_context("fork").Process(target=read_file, args=(path,))
    child.start()
    child.join()
    both = Usage.now()
    assert size <= own.logical_bytes - before.logical_bytes < 1.5 * size
    assert size <= both.logical_bytes - own.logical_bytes < 1.5 * size
    assert before.read_bytes is not None
