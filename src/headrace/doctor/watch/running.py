"""Runs a script as Python would, in a child that is watched, and reads what it saw however it ends.

The child is the user's own command, with one folder more on Python's path and one environment variable: the hooks are
set while its interpreter starts. So `__main__`, arguments, tracebacks and the processes that it starts are Python's
own, and a launcher such as torchrun hands the hooks on to its ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from headrace.doctor.watch.seen import Seen, read_seen
from headrace.doctor.watch.session import FOLDER_VARIABLE
from headrace.doctor.watch.starting import MARK
from headrace.errors import ConfigurationError

__all__ = ["Run", "run_watched"]

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that belong to the script. The watcher lives until the script has ended."""
FROM_TERMINAL = 0x80
"""si_code of Linux for a signal that the kernel sends, as a terminal's Ctrl-C: the script has it already."""
PATIENCE_S = 5.0
"""Seconds that a script has to end after the second Ctrl-C, before it is ended."""
STALE_S = 86_400.0
"""A folder that nobody wrote to for a day belongs to a watcher that was killed."""
PREFIX = "headrace-watch-"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a watched command ended."""

    status: int
    """Its exit status, or minus the signal that ended it."""
    wall_s: float
    was_interrupted: bool
    """True if it was asked to end by Ctrl-C or SIGTERM."""
    could_watch: bool
    """True if at least one interpreter of it let itself be watched."""
    seen: tuple[Seen, ...]
    """What its processes saw, one record for each that loaded data or trained; ranks in order."""

    @property
    def exit_status(self) -> int:
        """As a shell says it: 128 and the number of the signal that ended the script."""
        return self.status if self.status >= 0 else 128 - self.status

    @property
    def ending(self) -> str:
        """How the script ended, in words."""
        outcome = next((one.outcome for one in self.seen if one.outcome != "running"), "running")
        if self.was_interrupted or outcome == "interrupted":
            return "interrupted"
        if self.status < 0:
            return f"ended by {_signal_name(-self.status)}"
        if self.status:
            return f"failed with exit status {self.status}"
        return "finished"


def run_watched(words: Sequence[str]) -> Run:
    """Runs a command to its end.

    Args:
        words: `train.py --lr 1`, `-m package.module`, `-c code`, or a command such as `torchrun train.py`.

    Raises:
        ConfigurationError: there is no such script or command.
    """
    command = _command(words)
    _sweep()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        begun_s = time.monotonic()
        status, was_interrupted = _wait_for(command, _environment(folder))
        return Run(
            status=status,
            wall_s=time.monotonic() - begun_s,
            was_interrupted=was_interrupted,
            could_watch=any(folder.glob(f"*.{MARK}")),
            seen=tuple(_ended(one, status, was_interrupted) for one in _told(folder)),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told(folder: pathlib.Path) -> list[Seen]:
    """Records of the processes that did something; the others started Python for another reason."""
    found = read_seen(folder)
    return [seen for seen in found if seen.num_batches or seen.num_steps] or found[:1]


def _ended(seen: Seen, status: int, was_interrupted: bool) -> Seen:
    """Says how a process ended that could not say it itself."""
    if seen.outcome != "running" or not status:
        return seen
    is_asked = was_interrupted or -status in (signal.SIGINT, signal.SIGTERM)
    return dataclasses.replace(seen, outcome="interrupted" if is_asked else "failed")


def _command(words: Sequence[str]) -> list[str]:
    """The command to run, with Python in front of a script or module."""
    first = words[0]
    if first in ("-m", "-c"):
        if len(words) < 2:
            raise ConfigurationError(f"watch {first}: what to run is missing")
        return [sys.executable, *words]
    path = pathlib.Path(first)
    if first.endswith((".py", ".pyw")) or (path / "__main__.py").is_file():
        if not path.exists():
            raise ConfigurationError(f"watch: there is no script {first}")
        return [sys.executable, *words]
    if path.is_file():
        # `./run.sh` says itself what runs it; a bare name in this folder is a script, whatever else has its name.
        return [*words] if os.sep in first and os.access(path, os.X_OK) else [sys.executable, *words]
    beside = pathlib.Path(sys.executable).parent / first
    found = str(beside) if os.sep not in first and os.access(beside, os.X_OK) else shutil.which(first)
    if found is not None:
        return [found, *words[1:]]
    raise ConfigurationError(f"watch: there is no script and no command {first}")


def _environment(folder: pathlib.Path) -> dict[str, str]:
    startup = str(pathlib.Path(__file__).parent / "startup")
    paths = [startup, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, FOLDER_VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join(paths)}


def _wait_for(command: list[str], environment: dict[str, str]) -> tuple[int, bool]:
    """Runs the command in this terminal; hands signals on; returns (status, whether it was asked to end)."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
    watcher = os.getpid()

    def as_it_would_be() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _die_with(watcher)

    num_interrupts, deadline_s = 0, None
    try:
        process = subprocess.Popen(command, env=environment, preexec_fn=as_it_would_be)  # noqa: PLW1509 - no threads here
        while (status := process.poll()) is None:
            # A second is how long a lost SIGCHLD could be missed.
            told = signal.sigtimedwait({*PASSED_ON, signal.SIGCHLD}, 1.0)
            if told is not None and told.si_signo != signal.SIGCHLD:
                num_interrupts += told.si_signo in (signal.SIGINT, signal.SIGTERM)
                if told.si_code != FROM_TERMINAL:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(told.si_signo)
                if num_interrupts > 1 and deadline_s is None:
                    deadline_s = time.monotonic() + PATIENCE_S
            if deadline_s is not None and time.monotonic() > deadline_s:
                process.kill()
        return status, num_interrupts > 0
    finally:
        # Those that came too late to be handed on are about a script that is gone.
        while signal.sigtimedwait(PASSED_ON, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _die_with(watcher: int) -> None:
    """The script ends when its watcher is killed, as it would if it had been killed itself."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != watcher:
            os._exit(1)


def _sweep() -> None:
    """Removes what watchers left that were killed themselves."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.stat()
            if about.st_uid == os.getuid() and time.time() - about.st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)
