"""A fresh interpreter that has imported torch once, and forks a child for each request. See `doctor.lab.launch`.

    python -P -m headrace.doctor.lab.nursery DOOR PARENT [trains]

It runs nothing of the user's: a child finds the interpreter as it would find a new one, but for modules of torch and
numpy that are already imported. It ends when its door is closed, or with its parent.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Iterator

from headrace.doctor.lab import inside
from headrace.doctor.lab.leaving import leave
from headrace.doctor.lab.starting import Descriptors
from headrace.doctor.lab.warming import warm_up_training

__all__ = ["main"]

_NUMBER = struct.Struct("<i")
NUM_DESCRIPTORS = 6


def main(arguments: list[str]) -> None:
    """Serves until the door closes. In a child, serves its lab and ends."""
    door, parent = socket.socket(fileno=int(arguments[0])), int(arguments[1])
    inside.end_with(parent)
    for name in ("numpy", "torch", "torch.utils.data"):
        with contextlib.suppress(Exception):  # a broken installation is the user's to see, in the child
            __import__(name)
    if "trains" in arguments[2:]:
        with contextlib.suppress(Exception):
            warm_up_training()
    gc.collect()
    gc.freeze()  # collections in children do not touch, and so copy, these pages
    tell: dict[int, int] = {}
    with selectors.DefaultSelector() as selector, _wakeup() as wakeup:
        selector.register(door, selectors.EVENT_READ)
        selector.register(wakeup, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not door:
                    _tell_ends(wakeup, tell)
                    continue
                _, numbers, _, _ = socket.recv_fds(door, 16, NUM_DESCRIPTORS)
                if len(numbers) < NUM_DESCRIPTORS:
                    return
                if _fork(numbers, tell):
                    continue
                selector.close()
                for inherited in (door.detach(), wakeup.detach(), *tell.values()):
                    os.close(inherited)
                leave(_live(numbers))


def _fork(numbers: list[int], tell: dict[int, int]) -> bool:
    """True in the nursery, False in the child."""
    pid = os.fork()
    if not pid:
        return False
    tell_end = numbers[4]
    with contextlib.suppress(BrokenPipeError):
        os.write(tell_end, _NUMBER.pack(pid))
    tell[pid] = tell_end
    for number in (*numbers[:4], numbers[5]):
        os.close(number)
    return True


def _live(numbers: list[int]) -> int:
    """The life of a child; returns its exit status."""
    connection, recorder, dump, output, tell_end, file = numbers
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.close(tell_end)
    with os.fdopen(file, "rb") as request_file:
        request_file.seek(0)
        request = json.loads(request_file.read().decode("utf-8", "surrogateescape"))
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None  # torch asked for it while it was imported; the request's may be another
    if request["cwd"] is not None:
        with contextlib.suppress(OSError):
            os.chdir(request["cwd"])
    gc.unfreeze()
    descriptors = Descriptors(connection=connection, recorder=recorder, dump=dump, output=output)
    try:
        inside.run_spec(request["spec"], descriptors, os.getppid(), request["seed"])
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _tell_ends(wakeup: socket.socket, tell: dict[int, int]) -> None:
    with contextlib.suppress(BlockingIOError):
        wakeup.recv(4096)
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid in tell:
                tell_end = tell.pop(pid)
                with contextlib.suppress(BrokenPipeError):
                    os.write(tell_end, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
                os.close(tell_end)


@contextlib.contextmanager
def _wakeup() -> Iterator[socket.socket]:
    """A socket that is readable when a child has ended."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        os.set_blocking(end.fileno(), False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        yield ours
    finally:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(-1)
        theirs.close()
        with contextlib.suppress(OSError):
            ours.close()


if __name__ == "__main__":
    main(sys.argv[1:])
