"""Writes a changed file in the place of the user's, looks whether it does what it should, and takes it back if not."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Callable

from headrace.doctor.tuning.source_edit import Edited
from headrace.errors import ConfigurationError

__all__ = ["write_and_verify"]


def write_and_verify(file: str, edited: Edited, verify: Callable[[], str]) -> None:
    """Puts the changed text in the place of the file; keeps its mode, and what a link points to.

    Args:
        file: The user's file.
        edited: What it is to hold.
        verify: Called when it is written: returns why the new file is not as wanted; nothing: it is. Whatever it raises, the
            file is as it was before.

    Raises:
        ConfigurationError: the file has changed since it was read (it is not touched), it cannot be written, or the new one
            is not as wanted (the old one is there again).
    """
    path = pathlib.Path(file).resolve()
    before = _read(path)
    if hashlib.sha256(before).hexdigest() != edited.digest:
        raise ConfigurationError(
            f"{file} was changed while it was looked at, and is left alone", do="headrace tune ... again"
        )
    _replace(path, edited.raw)
    try:
        wrong = verify()
    except BaseException:
        _take_back(path, before, edited.raw)
        raise
    if wrong:
        _take_back(path, before, edited.raw)
        raise ConfigurationError(f"{file} was changed back: {wrong}")


def _take_back(path: pathlib.Path, before: bytes, ours: bytes) -> None:
    """Only what we wrote is taken back: what somebody has saved meanwhile is his."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == ours:
            _replace(path, before)


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None


def _replace(path: pathlib.Path, raw: bytes) -> None:
    """Whole or not at all: a new file beside it takes its name."""
    try:
        mode = path.stat().st_mode & 0o7777
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be changed: {error.strerror}") from None
    try:
        with os.fdopen(number, "wb") as new:
            new.write(raw)
            new.flush()
            os.fsync(new.fileno())
        pathlib.Path(name).chmod(mode)
        pathlib.Path(name).replace(path)
    except OSError as error:
        pathlib.Path(name).unlink(missing_ok=True)
        raise ConfigurationError(f"{path} cannot be changed: {error.strerror}") from None
    except BaseException:
        pathlib.Path(name).unlink(missing_ok=True)
        raise
