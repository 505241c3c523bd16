"""What the lab's child runs: loads TARGET, then serves experiments until the lab is gone.

    python -P -m headrace.doctor.lab.inside CONNECTION RECORDER DUMP PARENT TARGET [SEED]

The first three are inherited descriptors; see `doctor.lab.launch` for the other ways in which it is started.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from headrace.doctor.lab import spies
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.lab.starting import Descriptors
from headrace.doctor.stacks import innermost_at, user_traceback
from headrace.doctor.subject import Subject
from headrace.doctor.subject.groups import split_up
from headrace.doctor.subject.target import check_target, load_target
from headrace.doctor.subject.worlds import stand_alone
from headrace.errors import TargetError

__all__ = ["end_with", "main", "run_fork", "run_spec"]


def main(arguments: list[str]) -> None:
    """A child that is an interpreter of its own: output and session are set by whoever started it."""
    connection, recorder, dump, parent = map(int, arguments[:4])
    end_with(parent)
    seed = int(arguments[5]) if len(arguments) > 5 else None
    _serve_lab(lambda: _load(arguments[4], seed), connection, recorder, dump)


def _load(spec: str, seed: int | None) -> Any:
    """Loads TARGET; with a seed, what it draws while it is made is the same in each child."""
    stand_alone()
    if seed is not None:
        Bench.reseed(seed, "load")
    return load_target(spec)


def run_spec(spec: str, descriptors: Descriptors, parent: int, seed: int | None = None) -> None:
    """A child that is a fork of the nursery: loads TARGET, serves, returns."""
    _begin(descriptors, parent)
    _serve_lab(lambda: _load(spec, seed), descriptors.connection, descriptors.recorder, descriptors.dump)


def run_fork(target: Any, descriptors: Descriptors, parent: int) -> None:
    """A child that is a fork of the caller, who made the target: serves, returns."""
    _begin(descriptors, parent)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # the caller's thread pool did not come along
    _serve_lab(lambda: check_target(target), descriptors.connection, descriptors.recorder, descriptors.dump)


def _begin(descriptors: Descriptors, parent: int) -> None:
    """What `subprocess` does for a new interpreter, for a fork: a session, an output, default signals."""
    os.setsid()
    end_with(parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in ((0, nothing), (1, descriptors.output), (2, descriptors.output)):
        os.dup2(source, number)
    os.close(nothing)
    os.close(descriptors.output)
    # Python's own names for these: a notebook, or a test, may have put something else in their place.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for the life of this process
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _serve_lab(make: Callable[[], Any], connection_number: int, recorder_number: int, dump_number: int) -> None:
    """Serves until the connection closes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is reported, and leaves no file behind
    faulthandler.disable()  # inherited by a fork, it counts as enabled although others may have put handlers in place
    faulthandler.enable(dump_number, all_threads=True)
    faulthandler.register(signal.SIGUSR2, dump_number, all_threads=True)
    connection = Connection(connection_number)
    bench = Bench(FlightRecorder(recorder_number))
    spies.install(bench)
    try:
        subjects = _hold(make(), bench)
    except TargetError as error:
        connection.send(("refused", (error, None if error.__cause__ is None else user_traceback(error.__cause__))))
        return
    connection.send(("loaded", None))
    with contextlib.suppress(EOFError):
        while True:
            split, experiment = connection.recv()
            _serve(experiment, subjects[split], bench, connection)


def _hold(target: Any, bench: Bench) -> dict[str, Subject]:
    """The loaders of TARGET by name; the first one under the empty name too. Each knows the others."""
    subjects = {name: Subject(loader) for name, loader in split_up(target).items()}
    for subject in subjects.values():
        subject.siblings = subjects
        if not subject.is_iterable:
            spies.enter_transforms(bench, subject.transform_slots())
    return {"": next(iter(subjects.values())), **subjects}


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
