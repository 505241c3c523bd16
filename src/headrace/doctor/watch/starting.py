"""The first step in a watched process: it waits for the libraries, and imports nothing else until they are there.

Scripts start Python for many things; those that never load data should not pay for being watched.
"""

from __future__ import annotations

import os
import pathlib
import time

from headrace.doctor.watch.imports import when_imported

__all__ = ["MARK", "begin"]

MARK = "started"
"""Ending of the empty file by which the watcher knows that a process could be watched."""


def begin(folder: str) -> None:
    """Watches this process from the moment that it imports torch or headrace's loader."""
    began_s = time.perf_counter()
    (pathlib.Path(folder) / f"{os.getpid()}.{MARK}").touch()

    def start() -> None:
        from headrace.doctor.watch import session

        if session.current is None:
            session.begin_in_child(folder, began_s)

    when_imported("torch", start)
    when_imported("headrace.engine.loader", start)
