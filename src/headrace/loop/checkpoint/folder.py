"""The folder of a run's checkpoints: which there are, the newest good one, the best one, and which may go.

runs/digits/
    lock                 held while a process writes here
    latest               name of the checkpoint written last: text, replaced in one step
    best                 name of the best one, if they are judged by a metric
    step-000000120/      a checkpoint; it gets this name when it is whole
    writing-.../         one that is being written, or was when its process died
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import pathlib
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from headrace.errors import CheckpointError, DamagedCheckpoint
from headrace.loop.checkpoint import files
from headrace.loop.checkpoint.manifest import Manifest
from headrace.loop.durable import sync_folder

__all__ = ["CheckpointFolder"]

log = logging.getLogger("headrace.checkpoint")
STEP = re.compile(r"step-(\d+)")
WRITING = "writing-"
_LOCKED: weakref.WeakSet[CheckpointFolder] = weakref.WeakSet()
"""Folders whose lock this process holds."""


class CheckpointFolder:
    """Finds, adds and removes the checkpoints of one run; knows nothing of what is in them.

    Args:
        path: The folder; made if it is not there.
        keep: How many of the newest to keep.

    Adding is atomic: at every moment, also after a kill or a loss of power, each `step-*` folder is whole.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: int = 2) -> None:
        self.path = pathlib.Path(path)
        self.keep = keep
        self._lock: int | None = None

    # Finding.

    def steps(self) -> dict[int, pathlib.Path]:
        """Returns the whole checkpoints by step, oldest first."""
        found = {int(match[1]): entry for entry in self._entries() if (match := STEP.fullmatch(entry.name))}
        return dict(sorted(found.items()))

    def newest_good(
        self, refused: Callable[[pathlib.Path, CheckpointError], None]
    ) -> tuple[pathlib.Path, Manifest] | None:
        """Returns the newest checkpoint whose files are all as they were written, and its manifest; None: there is none.

        Args:
            refused: Called with each newer one that is damaged, and what is wrong with it.

        Raises:
            CheckpointError: there are checkpoints, and every one is damaged: starting anew would hide the loss. Or a newer one
                is whole and cannot be read, as of another format: going on from an older one would throw its steps away.
        """
        steps = self.steps()
        first: DamagedCheckpoint | None = None
        for path in reversed(steps.values()):
            try:
                return path, self.good(path)
            except DamagedCheckpoint as error:
                first = first or error
                refused(path, error)
        if first is not None:
            raise CheckpointError(
                f"none of the {len(steps)} checkpoints in {self.path} can be read",
                why=f"of the newest: {first.what}",
                do=f"start anew in another folder, or move these away: mv {self.path} {self.path}.damaged",
            ) from first
        return None

    def good(self, path: pathlib.Path) -> Manifest:
        """Returns the manifest of a checkpoint after checking all of its files.

        Raises:
            CheckpointError: it is damaged, or of a format that this version does not know.
        """
        manifest = files.read_manifest(path)
        files.check(path, manifest)
        return manifest

    def named(self, word: str) -> pathlib.Path | None:
        """Returns the checkpoint that `latest` or `best` names; None if there is none."""
        with contextlib.suppress(FileNotFoundError):
            path = self.path / (self.path / word).read_text(encoding="utf-8").strip()
            if STEP.fullmatch(path.name) and path.is_dir():
                return path
        return None

    def best(self) -> pathlib.Path:
        """Returns the best checkpoint.

        Raises:
            CheckpointError: there is none.
        """
        if (path := self.named("best")) is None:
            raise CheckpointError(
                f"{self.path} has no best checkpoint", do='Checkpointer(..., best="max") and save(metric=...) make one'
            )
        return path

    # Adding.

    def open(self) -> None:
        """Makes the folder, takes its lock and removes what a dead process left half-written.

        Raises:
            CheckpointError: another process writes there.
        """
        if self._lock is not None:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise CheckpointError(
                f"another process (pid {holder}) writes checkpoints to {self.path}",
                why="two runs in one folder would delete each other's",
                do="give this run a folder of its own, or end the other one first",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor
        _LOCKED.add(self)
        for entry in self._entries():
            if entry.name.startswith(WRITING):
                with contextlib.suppress(OSError):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def close(self) -> None:
        """Gives the lock back. In a forked child, it stays with the parent."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def place(self, word: str) -> pathlib.Path:
        """Returns the folder into which a checkpoint is written, made if it is not there: the same for all ranks.

        Args:
            word: Of this attempt to save; no other one has it.
        """
        place = self.path / f"{WRITING}{word}"
        place.mkdir(exist_ok=True)
        return place

    @contextlib.contextmanager
    def adding(self, step: int, word: str) -> Iterator[tuple[pathlib.Path, dict[str, Any]]]:
        """Lends the place of that word to write into; at the end of the block it gets its name.

        What stood under that step before is replaced. Leaving by an exception removes what was written.
        """
        place = self.place(word)
        done: dict[str, Any] = {}
        try:
            yield place, done
            target = self.path / f"step-{step:09d}"
            with contextlib.suppress(FileNotFoundError):
                # Not deleted before the new one has its name: between the two renames the older ones are there.
                target.rename(self.path / f"{WRITING}{os.getpid()}-replaced-{step}")
            place.rename(target)
            done["path"] = target
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        sync_folder(self.path)
        self._point("latest", target.name)

    def mark_best(self, path: pathlib.Path) -> None:
        """Makes `best` name a checkpoint, which is kept from then on."""
        self._point("best", path.name)

    def prune(self) -> None:
        """Removes all but the newest `keep`, the best one, and what `latest` names."""
        steps = list(self.steps().values())
        kept = {*steps[-self.keep :], self.named("best"), self.named("latest")}
        for path in [
            *(step for step in steps if step not in kept),
            *self.path.glob(f"{WRITING}{os.getpid()}-replaced-*"),
        ]:
            # Renamed first: half-deleted, it must not look like a checkpoint.
            going = path if path.name.startswith(WRITING) else self.path / f"{WRITING}{os.getpid()}-old-{path.name}"
            try:
                if going is not path:
                    path.rename(going)
                shutil.rmtree(going)
            except OSError as error:
                log.warning("an old checkpoint could not be removed: %s", error)

    def _point(self, word: str, name: str) -> None:
        descriptor, place = tempfile.mkstemp(prefix=f"{WRITING}{word}-", dir=self.path)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(name + "\n")
                file.flush()
                os.fsync(file.fileno())
            pathlib.Path(place).replace(self.path / word)
        except BaseException:
            with contextlib.suppress(OSError):
                pathlib.Path(place).unlink()
            raise
        sync_folder(self.path)

    def _entries(self) -> list[pathlib.Path]:
        try:
            return list(self.path.iterdir())
        except FileNotFoundError:
            return []


def _leave_to_parent() -> None:
    """In a forked child: a worker that outlives the training must not hold its folder."""
    for folder in list(_LOCKED):
        folder.close()


os.register_at_fork(after_in_child=_leave_to_parent)
