"""Where the runs are executed: a process that has torch imported and forks one child for each run.

    python -P -m headrace.doctor.resume.child CONNECTION PARENT

Importing torch takes longer than most of these runs. The user's file is executed in the forked child alone, so each run
begins as in a fresh interpreter. A child has a session of its own and ends with its parent.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from headrace.doctor.lab.inside import end_with
from headrace.doctor.lab.leaving import leave
from headrace.doctor.lab.warming import warm_up_training
from headrace.doctor.resume.calling import how_to_call
from headrace.doctor.resume.recording import Recorder
from headrace.doctor.stacks import user_traceback
from headrace.doctor.subject.target import load_attribute
from headrace.errors import TargetError

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Serves orders until the connection closes."""
    number, parent = map(int, arguments)
    end_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warm_up_training()
    importlib.import_module("headrace.engine.loader")
    connection = Connection(number)
    with contextlib.suppress(EOFError):
        while True:
            order: dict[str, Any] = connection.recv()
            pid = os.fork()
            if pid == 0:
                connection.close()
                leave(_run(order))
            connection.send(pid)
            connection.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _run(order: dict[str, Any]) -> int:
    """Runs the function once, or until it is to be interrupted."""
    os.setsid()
    end_with(os.getppid())
    printed = os.open(order["printed"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(printed, number)
    descriptor = os.open(order["rows"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    signal_at: int | None = order["signal_at"]

    def stepped(number: int) -> None:
        if number != signal_at:
            return
        if order["signal"] == "SIGTERM" and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _tell(descriptor, {"handles_signal": False})
        os.kill(os.getpid(), signal.Signals[order["signal"]])

    try:
        function = load_attribute(order["spec"])
        call = how_to_call(function, order["spec"])
        _tell(descriptor, {"takes_steps": call.steps is not None, "takes_workers": call.workers is not None})
        if call.steps is None and signal_at is None:
            signal_at = order["max_steps"]  # it does not stop by itself
        Recorder(descriptor, stepped).install()
        function(**call.arguments(order["folder"], order["max_steps"], order["num_workers"]))
    except TargetError as error:
        _tell(descriptor, {"refused": [error.what, error.why, error.do]})
        return 3
    except Exception as error:
        _tell(descriptor, {"raised": user_traceback(error)})
        return 1
    except SystemExit as leaving:
        return 0 if leaving.code is None else leaving.code if isinstance(leaving.code, int) else 1
    return 0


def _tell(descriptor: int, what: dict[str, Any]) -> None:
    os.write(descriptor, (json.dumps(what) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1:])
