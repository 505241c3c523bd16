"""DVC's hashes: of a file, of a folder.

Source: dvc-data, `hashfile/hash.py`, `hashfile/istextfile.py`, `hashfile/tree.py`.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Mapping

__all__ = ["file_md5", "folder_md5"]

CHUNK_BYTES = 2**20
"""DVC before 3.0 decides once for each piece of this size whether it is text."""
HEAD_BYTES = 512
_TEXT = bytes(range(32, 127)) + b"\n\r\t\f\b"


def file_md5(path: pathlib.Path, *, is_plain: bool = True) -> str:
    """Returns the md5 of a file.

    Args:
        path: The file.
        is_plain: False: as DVC before 3.0 did, with the line ends of Unix if it looks like text.
    """
    state = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            state.update(chunk if is_plain or not _is_text(chunk[:HEAD_BYTES]) else chunk.replace(b"\r\n", b"\n"))
    return state.hexdigest()


def _is_text(head: bytes) -> bool:
    """DVC's guess: no zero byte, and at most three of ten bytes that are not printable ASCII."""
    return b"\x00" not in head and len(head.translate(None, _TEXT)) <= 0.3 * len(head)


def folder_md5(files: Mapping[str, str]) -> str:
    """Returns the hash of a folder, from the md5 of its files by relative path: the md5 of DVC's listing of them."""
    listing = [{"md5": md5, "relpath": name} for name, md5 in sorted(files.items())]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"
