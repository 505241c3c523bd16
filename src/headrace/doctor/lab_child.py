"""What the lab's child runs: loads TARGET, then serves experiments until the lab is gone.

    python -P -m headrace.doctor.lab_child CONNECTION RECORDER DUMP PARENT TARGET

The first three are inherited descriptors; see `doctor.child`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from headrace.doctor.bench import Bench
from headrace.doctor.probes import spies
from headrace.doctor.recorder import FlightRecorder
from headrace.doctor.stacks import innermost_at, user_traceback
from headrace.doctor.subject import Subject
from headrace.doctor.target import load_target
from headrace.errors import TargetError

__all__ = ["end_with", "main"]


def main(arguments: list[str]) -> None:
    """Serves until the connection closes."""
    connection_number, recorder_number, dump_number, parent = map(int, arguments[:4])
    end_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is reported, and leaves no file behind
    faulthandler.enable(dump_number, all_threads=True)
    faulthandler.register(signal.SIGUSR2, dump_number, all_threads=True)
    connection = Connection(connection_number)
    bench = Bench(FlightRecorder(recorder_number))
    spies.install(bench)
    try:
        subject = Subject(load_target(arguments[4]))
        if not subject.is_iterable:
            spies.enter_transforms(bench, subject.transform_slots())
    except TargetError as error:
        connection.send(("refused", (error, None if error.__cause__ is None else user_traceback(error.__cause__))))
        return
    connection.send(("loaded", None))
    with contextlib.suppress(EOFError):
        while True:
            _serve(connection.recv(), subject, bench, connection)


def _serve(experiment: Any, subject: Subject, bench: Bench, connection: Connection) -> None:
    try:
        for record in experiment.run(subject, bench):
            connection.send(("record", record))
    except BaseException as error:  # also sys.exit() in the user's code, which is no end of the lab
        text = str(error).partition("\n")[0]
        connection.send(("failed", (f"{type(error).__name__}: {text}", innermost_at(error), user_traceback(error))))
    else:
        connection.send(("done", None))


def end_with(parent: int) -> None:
    """Asks the kernel to end this process when its parent ends, even by SIGKILL (Linux only)."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1  # <linux/prctl.h>
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
