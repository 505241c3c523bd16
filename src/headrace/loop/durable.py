"""What survives a loss of power."""

from __future__ import annotations

import os
import pathlib

__all__ = ["sync_folder"]


def sync_folder(folder: pathlib.Path) -> None:
    """Makes the names in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
