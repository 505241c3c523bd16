"""A child process that the lab watches: started fresh, heard over a pipe, ended with everything that it started.

How it is started is `doctor.lab.launch`.
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from typing import Any

import psutil

from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.lab.starting import Descriptors, Launcher, Process

__all__ = ["Child"]

OUTPUT_BYTES = 8192
"""How much of the user's printing is kept: its end."""
POLITE_S = 2.0
"""Seconds that a child has to end by itself: the user's own clean-up at exit runs."""
TERMINATE_S = 1.0
"""Seconds between SIGTERM and SIGKILL. A process stuck in native code dies of the first unless it catches it."""
DUMP_S = 2.0
"""Longest wait for a stack dump; it takes milliseconds unless the machine is overloaded."""


class Child:
    """One process that runs `doctor.lab.inside`."""

    def __init__(self, launcher: Launcher) -> None:
        self.recorder = FlightRecorder.create()
        self._dump_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._connection, theirs = multiprocessing.Pipe()
        self._output_end, output_write = os.pipe()
        os.set_blocking(self._output_end, False)
        self._printed = bytearray()
        self._is_idle = False
        self._heard: list[Any] = [self._connection, self._output_end]
        try:
            self._process: Process = launcher.start(
                Descriptors(
                    connection=theirs.fileno(),
                    recorder=self.recorder.descriptor,
                    dump=self._dump_file.fileno(),
                    output=output_write,
                )
            )
        finally:
            theirs.close()
            os.close(output_write)

    def send(self, request: Any) -> bool:
        """Hands a request over; False if the child has ended."""
        self._is_idle = False
        try:
            self._connection.send(request)
        except OSError:
            self._wait(POLITE_S)
            return False
        return True

    def next_event(self, timeout_s: float) -> tuple[str, Any] | None:
        """Returns the next event as (kind, value); None if there is none yet, or if the child has ended."""
        for ready in multiprocessing.connection.wait(self._heard, timeout_s):
            if ready is self._connection:
                try:
                    event: tuple[str, Any] = self._connection.recv()
                except (EOFError, OSError):
                    self._heard.remove(self._connection)
                    self._wait(POLITE_S)
                else:
                    self._is_idle = event[0] != "record"
                    return event
            else:
                self._hear_output()
        return None

    @property
    def has_ended(self) -> bool:
        """True once the interpreter is gone; the processes that it started may still be there."""
        is_gone = self._process.poll() is not None
        # What it sent before its end counts: it has ended once that is read.
        return is_gone and not (self._connection in self._heard and self._connection.poll())

    @property
    def exit_code(self) -> int:
        """Exit status, or minus the signal, once it `has_ended`."""
        return self._process.poll() or 0

    @property
    def output(self) -> str:
        """The end of what it printed."""
        self._hear_output()
        return self._printed.decode("utf-8", "replace")

    @property
    def dump(self) -> str:
        """The stacks that it wrote when it crashed or was asked to; empty if none."""
        size = os.fstat(self._dump_file.fileno()).st_size
        return os.pread(self._dump_file.fileno(), size, 0).decode("utf-8", "replace")

    def dump_stacks(self) -> str:
        """Makes the child write the stacks of all its threads, wherever they are, and returns them."""
        before = self.dump
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGUSR2)
        deadline = time.monotonic() + DUMP_S
        previous = before
        while time.monotonic() < deadline and self._process.poll() is None:
            time.sleep(0.02)
            current = self.dump
            if current != before and current == previous:
                break  # it has begun, and has stopped growing
            previous = current
        return self.dump[len(before) :]

    def end(self) -> None:
        """Ends the child and whatever it started, and gives everything back. May be called twice."""
        if self._connection.closed:
            return
        family = self._family()
        self._connection.close()
        if self._is_idle:  # it ends by itself when nobody can ask it any more
            self._wait(POLITE_S)
        self._signal_all(signal.SIGTERM, family)
        self._wait(TERMINATE_S)
        _wait_until_gone(family, TERMINATE_S)
        self._signal_all(signal.SIGKILL, family)
        self._process.wait()
        _wait_until_gone(family, TERMINATE_S)
        os.close(self._output_end)
        self._dump_file.close()
        self.recorder.close()

    @property
    def memory(self) -> int:
        """Bytes that it and all that it started hold now, shared pages counted once (Linux; else resident sets)."""
        total = 0
        with contextlib.suppress(psutil.Error):
            child = psutil.Process(self._process.pid)
            for one in [child, *child.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    total += _proportional(one.pid) or one.memory_info().rss
        return total

    def _family(self) -> list[psutil.Process]:
        """What it started: its descendants, and those of its session that lost their parent in a crash."""
        found: dict[int, psutil.Process] = {}
        with contextlib.suppress(psutil.NoSuchProcess):
            found = {one.pid: one for one in psutil.Process(self._process.pid).children(recursive=True)}
        for one in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if one.pid != self._process.pid and os.getsid(one.pid) == self._process.pid:
                    found[one.pid] = one
        return list(found.values())

    def _signal_all(self, number: signal.Signals, family: list[psutil.Process]) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(number)

    def _wait(self, timeout_s: float) -> bool:
        """Waits for the interpreter to end while listening to what it prints, or it might never get to the end."""
        deadline = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < deadline:
            self._hear_output()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
        return self._process.poll() is not None

    def _hear_output(self) -> None:
        """Takes what was printed, a bounded part of it at a time: some programs print faster than one can listen."""
        for _ in range(16):
            try:
                chunk = os.read(self._output_end, 65536)
            except BlockingIOError:
                return
            if not chunk:  # everybody who could print has ended
                if self._output_end in self._heard:
                    self._heard.remove(self._output_end)
                return
            self._printed += chunk
            del self._printed[:-OUTPUT_BYTES]


def _wait_until_gone(family: list[psutil.Process], timeout_s: float) -> None:
    """Waits for processes that are not our own children. A zombie is gone: its entry waits for whoever adopted it."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and any(map(_is_alive, family)):
        time.sleep(0.01)


def _proportional(pid: int) -> int | None:
    """Proportional set size in bytes; None where the kernel does not tell."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), None)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
