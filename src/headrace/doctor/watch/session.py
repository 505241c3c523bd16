"""All observers of one process: set up when torch is imported, asked every few seconds, asked again at the end.

What they say is written to a private folder, so that a crash of the interpreter leaves nearly all of it.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import inspect
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.watch.imports import when_imported
from headrace.doctor.watch.loaders import LoaderObserver
from headrace.doctor.watch.observer import Observer
from headrace.doctor.watch.seen import Seen, write_seen
from headrace.doctor.watch.timeline import Timeline

__all__ = ["FOLDER_VARIABLE", "Session", "begin_in_child", "current"]

FOLDER_VARIABLE = "HEADRACE_WATCH"
"""Environment variable that names the folder, in the watched script and in every process that it starts."""
ROOMS = ("training", "models", "schedules", "losses", "checkpoints")
"""Modules beside this one that hold further observers."""
SAVE_EVERY_S = 3.0
"""At most so much is lost in a crash. Soon after the first batch it is less: half of the loop's time so far."""
SAVE_SHARE, SAVE_FREE_S = 0.005, 0.02
"""What writing may cost: this share of the process' time, and a few times at its beginning."""

current: Session | None = None
"""The session of this process; None: it is not watched."""


class Session:
    """The observers of this process."""

    def __init__(self, folder: pathlib.Path | None = None, began_s: float | None = None) -> None:
        self.folder = folder
        self.began_s = time.perf_counter() if began_s is None else began_s
        self._observers: list[Observer] = []
        self._first_batch_s = -1.0
        self._spent_s = 0.0
        self._process = os.getpid()
        self._next_save_s = self.began_s
        self._ranks = (int(os.environ.get("RANK", "0") or 0), int(os.environ.get("WORLD_SIZE", "1") or 1))
        self._make()

    def _make(self) -> None:
        self.timeline = Timeline()
        self._loaders = LoaderObserver(self.timeline, began_s=self.began_s)
        self._loaders.on_batch = self._has_batch
        self._observers = [self._loaders]
        self._is_installed = False
        self._given: tuple[Any, ...] = ()
        self._waiting: list[Callable[[], None]] = []

    def begin(self, known: tuple[Any, ...] = ()) -> None:
        """Sets the hooks as soon as the libraries are there.

        Args:
            known: Models and optimizers that were made before; observers that want to be told of them are.
        """
        self._given = known
        self._waiting = [
            when_imported("torch", self._install),
            when_imported("headrace.engine.loader", self._loaders.install_own),
        ]
        self._given = ()

    def _install(self) -> None:
        """Sets the hooks into torch. One observer that fails is left out; the script goes on as without us."""
        if self._is_installed:
            return
        self._is_installed = True
        self._observers += _others(self.timeline)
        for observer in list(self._observers):
            try:
                observer.install()
                meet = getattr(observer, "meet", None)
                for one in self._given if callable(meet) else ():
                    meet(one)  # type: ignore[misc]
            except Exception as error:
                self._observers.remove(observer)
                _complain(observer, error)

    def end(self) -> None:
        """Takes the hooks away; what was seen stays."""
        for stop_waiting in self._waiting:
            stop_waiting()
        for observer in reversed(self._observers):
            observer.uninstall()

    def seen(self, outcome: str = "running") -> Seen:
        """Returns what all observers saw."""
        evidence: list[Evidence] = []
        for observer in self._observers:
            try:
                evidence += observer.seen()
            except Exception as error:
                _complain(observer, error)
        rank, world_size = self._rank()
        return Seen(
            process=os.getpid(),
            rank=rank,
            world_size=world_size,
            outcome=outcome,
            wall_s=time.perf_counter() - self.began_s,
            num_batches=self.timeline.num_batches,
            num_steps=self.timeline.num_steps,
            has_torch="torch" in sys.modules,
            evidence=tuple(evidence),
        )

    def save(self, outcome: str = "running") -> None:
        """Writes what was seen into the folder."""
        if self.folder is None or os.getpid() != self._process:
            return
        begun_s = time.perf_counter()
        try:
            write_seen(self.folder, self.seen(outcome))
        except Exception as error:  # a full disk, a folder that is gone: the script matters more
            _complain(self, error)
        now = time.perf_counter()
        self._spent_s += now - begun_s
        gap_s = min(SAVE_EVERY_S, (now - self._first_batch_s) / 2 + 0.05)
        affordable_s = self.began_s + (self._spent_s - SAVE_FREE_S) / SAVE_SHARE
        self._next_save_s = max(now + gap_s, affordable_s)

    def save_end(self) -> None:
        """The last word, when the interpreter ends in its own way."""
        self.save(_outcome())

    def forked(self) -> None:
        """This is a copy of the process: most of them are workers, which have nothing to tell."""
        self._next_save_s = 0.0

    def _has_batch(self, now: float) -> None:
        if now < self._next_save_s or self.folder is None:
            return
        if os.getpid() != self._process:
            self._start_anew()
        if self._first_batch_s < 0:
            self._first_batch_s = now
        self.save()

    def _start_anew(self) -> None:
        """A copy of the process walks through a loader itself, as ranks that were forked do."""
        from multiprocessing.util import Finalize

        self.end()
        self._process = os.getpid()
        self.began_s = time.perf_counter()
        self._make()
        self.begin()
        Finalize(None, self.save_end, exitpriority=-100)

    def _rank(self) -> tuple[int, int]:
        distributed: Any = sys.modules.get("torch.distributed")
        try:
            if distributed is not None and distributed.is_available() and distributed.is_initialized():
                self._ranks = (distributed.get_rank(), distributed.get_world_size())
        except Exception:  # a group that is being taken down
            return self._ranks
        return self._ranks


def begin_in_child(folder: str, began_s: float) -> None:
    """Watches this process for `headrace watch`, whose interpreter started at `began_s`."""
    global current
    current = Session(pathlib.Path(folder), began_s)
    current.begin()
    os.register_at_fork(after_in_child=current.forked)
    atexit.register(current.save_end)


def _others(timeline: Timeline) -> list[Observer]:
    """The observers of the other rooms: every class there that can be installed."""
    found: list[Observer] = []
    for room in ROOMS:
        name = f"headrace.doctor.watch.{room}"
        if importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == name]
        for kind in kinds:
            if all(hasattr(kind, word) for word in ("install", "uninstall", "seen")):
                made: Any = kind
                found.append(made(timeline) if inspect.signature(kind).parameters else made())
    return found


def _outcome() -> str:
    """How the script ended: Python keeps the exception that left it."""
    kind = getattr(sys, "last_type", None)
    if kind is None:
        return "finished"
    return "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"


def _complain(observer: object, error: Exception) -> None:
    """For whoever looks for a fault of headrace; a watched script says nothing about us."""
    if os.environ.get("HEADRACE_DEBUG"):
        sys.stderr.write(f"headrace: {type(observer).__name__}: {type(error).__name__}: {error}\n")
