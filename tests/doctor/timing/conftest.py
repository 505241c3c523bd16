"""Timed runs in this process, where nothing can go wrong, and in the lab's children."""

import contextlib
import os
import time

import psutil
import pytest

from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.subject import Subject
from headrace.doctor.timing.runs import TimedRun

GONE_S = 10.0


@pytest.fixture
def bench():
    """A bench that nobody watches."""
    recorder = FlightRecorder.create()
    yield Bench(recorder)
    recorder.close()


@pytest.fixture
def timed(bench):
    """Runs one timed run of a loader here; whatever happens, no process is left."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}

    def run(loader, kind="L", **wishes):
        wishes = {"window_s": 0.05, "most_s": 10.0} | wishes
        (record,) = TimedRun(kind=kind, **wishes).run(Subject(loader), bench)
        return record

    yield run
    deadline = time.monotonic() + GONE_S
    while True:
        left = [one for one in psutil.Process().children(recursive=True) if one.pid not in before and _works(one)]
        if not left:
            return
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)


def _works(process):
    with contextlib.suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        command = " ".join(process.cmdline())
        return "resource_tracker" not in command and "forkserver" not in command
    return False


@pytest.fixture
def in_lab(tmp_path):
    """Runs experiments on TARGETs of a user's file, in children; returns (records, ending)."""
    path = tmp_path / "users_file.py"

    def run(code, experiment, name="make_loader", per_sample_s=10.0):
        path.write_text(code)
        records = []
        spec = f"{path}:{name}"
        budget = Budget(60)
        with Lab(spec, budget=budget, per_sample_s=per_sample_s) as lab:
            ending = lab.run(experiment, records.append)
        return records, ending

    run.path = path
    return run


@pytest.fixture
def no_orphans():
    """Fails if a process that knows a word in its command line or environment outlives the test."""
    word = f"HEADRACE_TEST_{os.getpid()}_{time.monotonic_ns()}"
    os.environ[word] = "1"
    yield
    del os.environ[word]
    deadline = time.monotonic() + GONE_S
    while left := [
        process for process in psutil.process_iter() if process.pid != os.getpid() and _knows(process, word)
    ]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)


def _knows(process, word):
    with contextlib.suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE and word in process.environ()
    return False
