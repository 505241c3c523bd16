"""Runs the training function in processes of its own, each to its end, to a number of steps, or to a signal.

Whatever a run does, it has ended afterwards, with everything that it started.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Literal, Self

import psutil

from headrace.doctor.lab.outside import Budget
from headrace.doctor.resume.steps import Step, parse
from headrace.errors import TargetError

__all__ = ["Run", "Runner"]

Signal = Literal["SIGKILL", "SIGTERM"]
TICK_S = 0.05
GONE_S = 10.0
"""Seconds in which a killed process disappears, also on a machine under load."""
OUTPUT_BYTES = 4096
"""How much of what a run printed is looked at: its end."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run that has ended."""

    outcome: Literal["returned", "raised", "signalled", "crashed", "over-budget"]
    """signalled: by the signal that was ordered; crashed: by another."""
    steps: tuple[Step, ...]
    wall_s: float
    error: str = ""
    """Last line of the traceback, or of what it printed."""
    traceback: str = ""
    handles_signal: bool = True
    """False if SIGTERM was ordered and the function has no handler for it."""
    takes_steps: bool = True
    """True if the function says where it stops; else it is ended from outside, by SIGKILL."""
    takes_workers: bool = False


class Runner:
    """Starts runs, one after another. Use as a context manager: on leaving, everything has ended.

    Args:
        folder: Where it may keep files of its own.
        budget: Seconds for everything.
    """

    def __init__(self, folder: pathlib.Path, budget: Budget) -> None:
        self._folder, self._budget = folder, budget
        self._num_runs = 0
        self._current: int | None = None

    def __enter__(self) -> Self:
        self._connection, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "headrace.doctor.resume.child", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C on the terminal reaches only this process
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._current is not None:
            _end_session(self._current)
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def run(
        self,
        spec: str,
        checkpoints: pathlib.Path,
        *,
        max_steps: int,
        num_workers: int | None = None,
        signal_at: int | None = None,
        ordered: Signal = "SIGKILL",
    ) -> Run:
        """Runs the function once.

        Args:
            spec: TARGET, a training function.
            checkpoints: Its folder.
            max_steps: Given to the function; one that does not take it is killed after as many steps of its own.
            num_workers: Given to the function; None: its own default.
            signal_at: The process sends itself a signal after this many steps of its own.
            ordered: Which one.

        Raises:
            TargetError: there is no such function, or it cannot be called.
        """
        self._num_runs += 1
        rows, printed = (self._folder / f"{self._num_runs}.{name}" for name in ("rows", "printed"))
        order = {
            "spec": spec,
            "folder": str(checkpoints),
            "rows": str(rows),
            "printed": str(printed),
            "max_steps": max_steps,
            "num_workers": num_workers,
            "signal_at": signal_at,
            "signal": ordered,
        }
        started = time.monotonic()
        code = self._wait(order)
        steps, told = parse(rows.read_text().splitlines() if rows.exists() else ())
        if "refused" in told:
            what, why, do = told["refused"]
            raise TargetError(what, why=why, do=do)
        takes_steps = told.get("takes_steps", True)
        is_signalled = signal_at is not None or not takes_steps
        outcome = _outcome(code, ordered if is_signalled else None)
        traceback = told.get("raised", "")
        said = (traceback or _tail(printed)).strip().rpartition("\n")[2]
        return Run(
            outcome=outcome,
            steps=steps,
            wall_s=time.monotonic() - started,
            error=(said or f"exit status {code}") if outcome in {"raised", "crashed"} else "",
            traceback=traceback,
            handles_signal=told.get("handles_signal", True),
            takes_steps=takes_steps,
            takes_workers=told.get("takes_workers", False),
        )

    def _wait(self, order: dict[str, Any]) -> int | None:
        """Has a run executed; returns its exit status, minus the signal; None if the budget ended first."""
        try:
            self._connection.send(order)
            if not self._hears():
                return None
            self._current = self._connection.recv()
            is_over = not self._hears()
            _end_session(self._current)  # also what a run has left that ended by itself
            self._current = None
            code: int = self._connection.recv()
        except (EOFError, OSError):  # it ended itself together with its parent, by a signal to both
            return -signal.SIGKILL
        return None if is_over else code

    def _hears(self) -> bool:
        while not self._connection.poll(TICK_S):
            if self._budget.left_s <= 0:
                return False
        return True


def _tail(printed: pathlib.Path) -> str:
    return printed.read_bytes()[-OUTPUT_BYTES:].decode("utf-8", "replace") if printed.exists() else ""


def _end_session(leader: int) -> None:
    """Ends what is left of a session: a run, and the workers of one that was killed."""
    family = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(leader).children(recursive=True)
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(one.pid) == leader:
                family.append(one)
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()
    psutil.wait_procs([one for one in family if one.pid != leader], timeout=GONE_S)


def _outcome(
    code: int | None, ordered: Signal | None
) -> Literal["returned", "raised", "signalled", "crashed", "over-budget"]:
    if code is None:
        return "over-budget"
    if code == 0:
        return "returned"
    if ordered is not None and (code == -signal.Signals[ordered] or ordered == "SIGTERM"):
        return "signalled"
    return "raised" if code > 0 else "crashed"
