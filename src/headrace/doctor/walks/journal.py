"""The journal of one worker: what it does, written before it is done, in a file that outlives the process.

One JSON value per line, in the order of events. A worker that is killed loses at most half a line.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import msgspec

__all__ = ["Event", "Journal", "read_journal"]

Event = dict[str, Any]
"""`{"at": "begin", ...}`: what happened, and what belongs to it."""


class Journal:
    """Written by one process. Every event is on its way to the file when `write` returns: nothing is buffered here."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, at: str, **fields: Any) -> None:
        """Adds one event."""
        os.write(self._descriptor, msgspec.json.encode({"at": at, **fields}, enc_hook=repr) + b"\n")

    def close(self) -> None:
        """Ends the journal."""
        os.close(self._descriptor)


def read_journal(path: str | pathlib.Path, *, offset: int = 0) -> list[Event]:
    """Returns the events behind an offset in bytes; none if the worker never came so far as to write."""
    try:
        data = pathlib.Path(path).read_bytes()[offset:]
    except FileNotFoundError:
        return []
    events = []
    for line in data.split(b"\n"):
        try:
            events.append(msgspec.json.decode(line))
        except msgspec.DecodeError:  # the last line, cut short by the end of the process, or empty
            continue
    return events
