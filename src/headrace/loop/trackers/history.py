"""A file of JSON lines that can be killed at any byte and gone on with."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.errors import TrackerWarning
from headrace.loop.durable import sync_folder
from headrace.loop.trackers.plain import plain

__all__ = ["History"]


class History:
    """Rows in the order in which they were appended, one JSON object a line.

    Rows with a "step" belong to it; the others to the place where they stand. Each row is handed to the system in one piece
    at once, so a kill of the process loses none; `sync` also makes them survive a loss of power.

    Args:
        path: The file; it and its folder are made when it is opened.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.names_there: frozenset[str] = frozenset()
        """Names of values at the very step that `open` cut behind: what is logged again of it stands there already."""
        self._file: int | None = None
        self._bytes = 0

    def open(self, resumed_at: int | None) -> None:
        """Repairs what a kill left, cuts away what lies beyond a step, and opens the file for appending.

        Args:
            resumed_at: Rows of later steps go. None: the run begins; an earlier history under this name is kept beside
                it, as `<name>.1.jsonl`, and so on.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            if resumed_at is None:
                self._set_aside()
            else:
                self._cut(resumed_at)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._bytes = os.fstat(self._file).st_size

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a row.

        Raises:
            OSError: the disk is full, ...; the rows before are whole, and nothing of this one stays.
        """
        if self._file is None:
            raise ValueError(f"{self.path} is not open")
        line = (json.dumps(plain(row), allow_nan=False) + "\n").encode()
        try:
            done = 0
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._bytes)
            raise
        self._bytes += len(line)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the rows that can be read, oldest first; the file need not be open."""
        with self.path.open("rb") as lines:
            for line in lines:
                if (row := _read(line)) is not None:
                    yield row

    def sync(self) -> None:
        """Returns when all rows are on the disk."""
        if self._file is not None:
            os.fsync(self._file)

    def close(self) -> None:
        """Puts all rows on the disk and closes the file. May be called twice."""
        if self._file is not None:
            try:
                os.fsync(self._file)
            finally:
                os.close(self._file)
                self._file = None

    def _set_aside(self) -> None:
        if any("step" in row for row in self.rows()):
            named = (self.path.with_name(f"{self.path.stem}.{n}{self.path.suffix}") for n in itertools.count(1))
            self.path.rename(next(name for name in named if not name.exists()))
        else:
            self.path.unlink()

    def _cut(self, step: int) -> None:
        """Writes what stays into a new file and puts it in the place of the old one, in one move."""
        new = self.path.with_name(f"{self.path.name}.new")
        names: set[str] = set()
        unreadable: list[int] = []
        is_beyond, is_changed, number = False, False, 0
        with self.path.open("rb") as lines, new.open("wb") as kept:
            for number, line in enumerate(lines, 1):
                if (row := _read(line)) is None:
                    unreadable.append(number)
                    continue
                is_beyond = is_beyond or row.get("step", step) > step
                if not _stays(row, step, is_beyond=is_beyond):
                    is_changed = True
                    continue
                if row.get("step") == step:
                    names |= row.keys()
                kept.write(line.rstrip(b"\n") + b"\n")
                is_changed = is_changed or not line.endswith(b"\n")
            kept.flush()
            os.fsync(kept.fileno())
        self.names_there = frozenset(names)
        if is_changed or unreadable:
            new.replace(self.path)
            sync_folder(self.path.parent)
        else:
            new.unlink()
        if damaged := [one for one in unreadable if one < number]:  # the last one was cut short by the kill
            warnings.warn(
                f"{self.path}: lines {damaged} could not be read and were left out", TrackerWarning, stacklevel=4
            )


def _read(line: bytes) -> dict[str, Any] | None:
    """The row of a line; None if it is cut short: no beginning of an object is an object."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _stays(row: Mapping[str, Any], step: int, *, is_beyond: bool) -> bool:
    """Whether a row belongs to what a run that goes on behind `step` has done."""
    if "step" in row:
        return bool(row["step"] <= step)
    if row.get("resumed_at") is not None and row["resumed_at"] >= step:
        return False  # an earlier attempt to go on from the same place, which left nothing
    return not is_beyond
