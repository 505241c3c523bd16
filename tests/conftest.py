"""What every test gets: hypothesis profiles, a nursery that is kept, and a guard that no test leaves a process behind.

The hang guard is set in pyproject.toml (pytest-timeout dumps the stacks of all threads and ends the run); that it works
is tested in house/test_hang_guard.py.
"""

import gc
import importlib.util
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import hypothesis
import psutil
import pytest

from headrace import native
from headrace.doctor.lab import launch
from headrace.doctor.lab.launch import Nursery

# No deadline anywhere: on two busy cores the time of one example says nothing about the code.
hypothesis.settings.register_profile("default", deadline=None, max_examples=50)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    max_examples=50,
    derandomize=True,  # whether a change may land is decided by the change; "search" looks for examples nobody thought of
    print_blob=True,  # a failure on another machine can be replayed here
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("search", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Its libraries take gigabytes: `make real` runs it in an environment of its own.
collect_ignore = ["real", "corpus/cases"]
# Programs beside their tests, and what they run: collected as modules for doctests, they would not find each other.
collect_ignore += [f"bottlenecks/{name}" for name in ("cases", "gains.py", "oracle.py", "run.py", "truth.py")]

# Kept by multiprocessing and torch for the life of the interpreter; they belong to no test.
HELPERS = ("multiprocessing.resource_tracker", "torch_shm_manager")


class KeptNursery(Nursery):
    """Has its children forked by a nursery that all tests of this process share.

    A nursery runs nothing of anybody's and hands on nothing but an imported torch, over which it takes two seconds; a
    thousand tests want one. What a nursery inherits when it starts is the same for all who share it: a test that changed
    something of that gets its own. The ways without it are tested as well: commands start theirs, and so do notebooks.
    """

    kept: ClassVar[dict[bool, Nursery]] = {}

    def __init__(self, spec, seed=None, *, trains=False):
        # A process may end with the thread that started it.
        self._is_own = _inherited() != BEGAN_WITH or threading.current_thread() is not threading.main_thread()
        if self._is_own:
            super().__init__(spec, seed, trains=trains)
            return
        if trains not in self.kept or self.kept[trains]._process.poll() is not None:
            self.kept[trains] = Nursery("", trains=trains)
        self._spec, self._seed = spec, seed
        self._door, self._process = self.kept[trains]._door, self.kept[trains]._process

    def close(self):
        if self._is_own:
            super().close()


@pytest.fixture
def own_nursery(monkeypatch):
    """The process is as a user's: each diagnosis starts a nursery and ends it."""
    monkeypatch.setattr(launch, "Nursery", Nursery)


def _inherited():
    """What a new interpreter has of the process that starts it, and keeps."""
    names = ("PYTHON", "LD_", "MALLOC", "OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS", "TORCH", "CUDA", "ATEN")
    limits = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE)
    return (
        {name: value for name, value in os.environ.items() if name.startswith(names)},
        [resource.getrlimit(limit) for limit in limits],
        os.sched_getaffinity(0),
        signal.pthread_sigmask(signal.SIG_BLOCK, []),
        sys.executable,
    )


BEGAN_WITH = _inherited()


@pytest.fixture(scope="session", autouse=True)
def kept_nurseries():
    """Diagnosis in this process starts its children from nurseries that are kept until its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "Nursery", KeptNursery)
        yield
    for nursery in KeptNursery.kept.values():
        nursery.close()


def _children() -> set[psutil.Process]:
    """Processes below this one that a test is answerable for."""
    found = set()
    kept = {nursery._process.pid for nursery in KeptNursery.kept.values()}
    for child in psutil.Process().children(recursive=True):
        try:
            command = " ".join(child.cmdline())
            # The fork server stays; the workers that it forked look the same, but are not our own children.
            is_server = "multiprocessing.forkserver" in command and child.ppid() == os.getpid()
            is_over = child.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:  # it ended meanwhile
            continue
        is_helper = child.pid in kept or any(helper in command for helper in HELPERS)
        if not (is_server or is_over or is_helper):
            found.add(child)
    return found


@pytest.fixture(autouse=True)
def no_process_left_behind():
    """Fails a test after which a process still runs that was not there before."""
    before = _children()
    yield
    if _children() - before:
        gc.collect()  # iterators that the test forgot end their workers when they are collected
        psutil.wait_procs(_children() - before, timeout=10)
    left = _children() - before
    for child in left:
        child.kill()
    assert not left, f"processes left behind: {left}"


@pytest.fixture(scope="session")
def load_file():
    """Imports a Python file that belongs to no package: a tool, a helper beside a test."""

    def load(path):
        path = Path(path)
        spec = importlib.util.spec_from_file_location(f"file_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="module")
def build_native(tmp_path_factory):
    """Builds a library of the package for the tests of one file alone; skips them where that cannot be done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "folder", tmp_path_factory.mktemp("native"))

        def build(source):
            try:
                native.build(source)
            except (subprocess.CalledProcessError, FileNotFoundError):
                pytest.skip("no C compiler, or no headers of the library that it needs")

        yield build
