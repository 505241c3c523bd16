"""Which data files are opened through Python, and what their first bytes are."""

from __future__ import annotations

import os
import pathlib
import stat
import sys
from collections.abc import Iterable
from typing import Any

from headrace.doctor.evidence import OpenedFile
from headrace.doctor.lab.bench import Bench
from headrace.doctor.stacks import is_user_code

__all__ = ["describe_files", "spy_on_open"]

HEAD_BYTES = 64
"""Enough for every magic number, and for the first line of a pointer file."""
_CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll", ".dylib", ".pth", ".egg-info")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/")


def spy_on_open(bench: Bench) -> None:
    """Listens to Python's own audit event of opening a file. Libraries that open files in C are not heard."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not bench.is_listening:
            return
        path, mode, flags = (*arguments, None, None, None)[:3]
        writes = (isinstance(mode, str) and any(letter in mode for letter in "wax")) or (
            isinstance(flags, int) and flags & (os.O_WRONLY | os.O_CREAT)
        )
        if writes or not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - at once: the current folder may change
        if not name.endswith(_CODE) and not name.startswith(_SYSTEM) and is_user_code(name):
            bench.note_opened(name)

    sys.addaudithook(hook)


def describe_files(paths: Iterable[str]) -> tuple[OpenedFile, ...]:
    """Returns size and first bytes of files that were opened. Pipes and the like are left alone: reading takes from them."""
    found = []
    for path in paths:
        try:
            status = pathlib.Path(path).stat()
            if not stat.S_ISREG(status.st_mode):
                continue
            with pathlib.Path(path).open("rb", buffering=0) as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            found.append(OpenedFile(path=path, size_bytes=None, head=b""))
        else:
            found.append(OpenedFile(path=path, size_bytes=status.st_size, head=head))
    return tuple(found)
