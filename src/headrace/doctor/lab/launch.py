"""Three ways to start the process in which the lab runs what is examined.

    Nursery       a fresh interpreter that has imported torch once; each child is a fork of it: milliseconds, nothing shared
    ForkOfCaller  a fork of this very process: the only way to hold an object that exists nowhere else (a notebook's)
    FreshStart    a new interpreter for each child: where there is no fork

All of them give the child the same descriptors and the same life: a session of its own, its output in our pipe, an end
with its parent.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from headrace.doctor.lab.starting import Descriptors, Launcher, Process

__all__ = ["ForkOfCaller", "FreshStart", "Nursery", "launcher_for", "launchers_for"]

POLL_S = 0.01
NURSERY_END_S = 2.0
"""Seconds that a nursery has to end by itself when nobody needs it any more."""


def launcher_for(spec: str, *, seed: int | None = None, trains: bool = False) -> Launcher:
    """Returns the fastest way there is on this platform to start children for a TARGET of the command line.

    Args:
        spec: TARGET.
        seed: Seed of the global generators while TARGET is loaded, so that two children load the same. None: as they are.
        trains: True: children make optimizers; what these import is imported once beforehand.
    """
    return Nursery(spec, seed, trains=trains) if sys.platform == "linux" else FreshStart(spec, seed)


def launchers_for(targets: Sequence[Any], *, seed: int) -> list[Launcher]:
    """Returns how the children of two targets are started: of two TARGETs on the command line, out of one nursery.

    The first may own what starts the other's children: close it last.
    """
    first, second = targets
    if isinstance(first, str) and isinstance(second, str):
        launcher = launcher_for(first, seed=seed)
        other = launcher.for_target(second) if isinstance(launcher, Nursery) else launcher_for(second, seed=seed)
        return [launcher, other]
    return [launcher_for(one, seed=seed) if isinstance(one, str) else ForkOfCaller(one) for one in targets]


class FreshStart:
    """A new interpreter for each child."""

    def __init__(self, spec: str, seed: int | None = None) -> None:
        self._spec, self._seed = spec, seed

    def start(self, descriptors: Descriptors) -> Process:
        """Starts `python -m headrace.doctor.lab.inside`."""
        numbers = (descriptors.connection, descriptors.recorder, descriptors.dump)
        return subprocess.Popen(
            # -P: the folder in which one happens to be does not get in the way of the child's own imports.
            [
                *(sys.executable, "-P", "-m", "headrace.doctor.lab.inside"),
                *map(str, [*numbers, os.getpid()]),
                *(self._spec, *([] if self._seed is None else [str(self._seed)])),
            ],
            stdin=subprocess.DEVNULL,
            stdout=descriptors.output,
            stderr=descriptors.output,
            pass_fds=numbers,
            start_new_session=True,  # one group to end, and Ctrl-C on the terminal reaches only this process
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def close(self) -> None:
        """Keeps nothing."""


class Nursery:
    """Children are forks of one fresh interpreter that has imported torch and nothing of the user's.

    It starts at once and imports while the caller does other things; it ends with its caller, even by SIGKILL.
    """

    def __init__(self, spec: str, seed: int | None = None, *, trains: bool = False) -> None:
        self._spec, self._seed = spec, seed
        wishes = ["trains"] if trains else []
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "headrace.doctor.lab.nursery",
                    str(theirs.fileno()),
                    str(os.getpid()),
                    *wishes,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def for_target(self, spec: str) -> Launcher:
        """Returns what starts children for another TARGET out of this nursery, whose owner alone closes it."""
        return _Guest(self, spec)

    def start(self, descriptors: Descriptors, spec: str | None = None) -> Process:
        """Asks for a fork; waits until it is there.

        Args:
            descriptors: What the child inherits.
            spec: TARGET. Default: the nursery's own.

        Raises:
            OSError: the nursery has ended.
        """
        told, tell = os.pipe()
        wanted = {
            "spec": self._spec if spec is None else spec,
            "seed": self._seed,
            "cwd": _folder(),
            "env": dict(os.environ),
        }
        request = json.dumps(wanted).encode("utf-8", "surrogateescape")
        numbers = [descriptors.connection, descriptors.recorder, descriptors.dump, descriptors.output, tell]
        try:
            # The environment may be larger than one packet: it travels through a file of its own.
            with contextlib.closing(_sealed(request)) as file:
                socket.send_fds(self._door, [b"child"], [*numbers, file.fileno()])
        finally:
            os.close(tell)
        return _Nursed(told)

    def close(self) -> None:
        """Ends the nursery; its children have ended."""
        self._door.close()
        try:
            self._process.wait(NURSERY_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Guest:
    """Starts children for one TARGET out of the nursery of another."""

    def __init__(self, nursery: Nursery, spec: str) -> None:
        self._nursery, self._spec = nursery, spec

    def start(self, descriptors: Descriptors) -> Process:
        """As `Nursery.start`."""
        return self._nursery.start(descriptors, self._spec)

    def close(self) -> None:
        """The nursery is its owner's."""


class _Nursed:
    """A child of the nursery: it is the nursery's to wait for, and tells of its end through a pipe."""

    _NUMBER = struct.Struct("<i")

    def __init__(self, told: int) -> None:
        self._told = told
        self._code: int | None = None
        first = os.read(told, self._NUMBER.size)
        if len(first) < self._NUMBER.size:
            os.close(told)
            raise OSError("the process that starts children has ended")
        self.pid: int = self._NUMBER.unpack(first)[0]
        os.set_blocking(told, False)

    def poll(self) -> int | None:
        """As `Process.poll`."""
        if self._code is None:
            with contextlib.suppress(BlockingIOError):
                last = os.read(self._told, self._NUMBER.size)
                # Nothing: the nursery itself was ended, and its children with it.
                self._code = self._NUMBER.unpack(last)[0] if last else -signal.SIGKILL
                os.close(self._told)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """As `Process.wait`."""
        return _wait(self.poll, timeout)

    def send_signal(self, sig: int) -> None:
        """As `Process.send_signal`."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)


class ForkOfCaller:
    """Children are forks of this process, which hold its objects as they are now; whatever they do stays in them."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def start(self, descriptors: Descriptors) -> Process:
        """Forks."""
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python warns that a process with threads forks. The child starts no thread pool that the caller had, and
            # ends without running anything of the caller's.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            return _Forked(pid)
        status = 1
        try:
            gc.freeze()  # the caller's objects are not collected here: their finalizers are the caller's
            from headrace.doctor.lab.inside import run_fork

            run_fork(self._target, descriptors, parent)
            status = 0
        finally:
            os._exit(status)

    def close(self) -> None:
        """Keeps nothing."""


class _Forked:
    """A child of this process that `subprocess` does not know."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """As `Process.poll`."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the caller waits for all of its children itself
                self._code = 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """As `Process.wait`."""
        return _wait(self.poll, timeout)

    def send_signal(self, sig: int) -> None:
        """As `Process.send_signal`."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def _wait(poll: Callable[[], int | None], timeout: float | None) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    while (code := poll()) is None:
        if deadline is not None and time.monotonic() >= deadline:
            raise subprocess.TimeoutExpired("child", timeout or 0.0)
        time.sleep(POLL_S)
    return code


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - a text, and it may be gone
    except OSError:
        return None


def _sealed(data: bytes) -> Any:
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
    file.write(data)
    file.flush()
    return file
