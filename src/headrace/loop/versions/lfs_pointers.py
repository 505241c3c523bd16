"""Pointers of git-lfs: the small texts that stand for large files, in git and, before `git lfs pull`, on the disk.

Source: git-lfs, docs/spec.md.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re

from headrace.loop.versions.git import base_of, git

__all__ = ["LIMIT_BYTES", "STARTS", "Pointer", "pointer_in", "pointers_in_git", "pointers_on_disk"]

STARTS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")
"""How a pointer begins; `hawser` was the name of git-lfs before release."""
LIMIT_BYTES = 1024
"""A pointer is shorter than this."""
SHORTEST_BYTES = 120
"""No pointer is shorter: its first line, an oid of 64 digits and a size."""
PATIENCE_S = 60.0
"""For the objects of a folder with very many files: a pointer that was not seen would not be checked."""
OF_GIT = frozenset({".gitignore", ".gitattributes", ".gitkeep"})
"""Files that git keeps in a folder of data that it does not keep."""
_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_SIZE = re.compile(rb"^size (\d+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Pointer:
    """What a pointer says of the content."""

    oid: str
    """sha256 of the content."""
    size: int
    """Bytes of the content."""


def pointer_in(text: bytes) -> Pointer | None:
    """Returns the pointer that a whole file consists of; None: it is something else."""
    if len(text) >= LIMIT_BYTES or not text.startswith(STARTS):
        return None
    oid, size = _OID.search(text), _SIZE.search(text)
    return None if oid is None or size is None else Pointer(oid[1].decode(), int(size[1]))


def pointers_on_disk(path: pathlib.Path, files: dict[str, int]) -> dict[str, Pointer]:
    """Returns the pointers, by relative path, that lie in the place of content; reads only files of a pointer's size."""
    found = {}
    for name, size in files.items():
        if SHORTEST_BYTES <= size < LIMIT_BYTES:
            pointer = pointer_in((path / name if path.is_dir() else path).read_bytes())
            if pointer is not None:
                found[name] = pointer
    return found


def pointers_in_git(path: pathlib.Path) -> tuple[dict[str, Pointer], int] | None:
    """Returns the pointers that git keeps for a path, by relative path, and the number of files that git keeps there.

    Git itself is asked; git-lfs need not be installed. None: no git, or no repository.
    """
    base = base_of(path)
    staged = git(base, "--literal-pathspecs", "ls-files", "-s", "-z", "--", os.path.relpath(path, base))
    if staged is None:
        return None
    blobs = {}
    for row in filter(None, staged.split(b"\0")):
        facts, _, name = row.partition(b"\t")
        mode, blob, _ = facts.split(b" ")
        place = base / os.fsdecode(name)
        if mode in {b"100644", b"100755"} and (place == path or place.name not in OF_GIT):  # no links, no submodules
            blobs[_relative(place, path)] = blob
    texts = _small_texts(base, set(blobs.values()))
    found = {name: pointer_in(texts[blob]) for name, blob in blobs.items() if blob in texts}
    return {name: pointer for name, pointer in sorted(found.items()) if pointer is not None}, len(blobs)


def _relative(place: pathlib.Path, path: pathlib.Path) -> str:
    return path.name if place == path else place.relative_to(path).as_posix()


def _small_texts(base: pathlib.Path, blobs: set[bytes]) -> dict[bytes, bytes]:
    """The content of those objects that have the size of a pointer."""
    said = git(
        base,
        "cat-file",
        "--batch-check=%(objectname) %(objectsize)",
        given=b"\n".join([*blobs, b""]),
        patience_s=PATIENCE_S,
    )
    rows = [row.split(b" ") for row in (said or b"").splitlines()]
    small = [row[0] for row in rows if len(row) == 2 and row[1].isdigit() and int(row[1]) in _SIZES]
    content = git(base, "cat-file", "--batch", given=b"\n".join([*small, b""]), patience_s=PATIENCE_S) if small else b""
    texts, at = {}, 0
    while content and at < len(content):
        end = content.index(b"\n", at)
        blob, _, size = content[at:end].split(b" ")
        texts[blob] = content[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return texts


_SIZES = range(SHORTEST_BYTES, LIMIT_BYTES)
