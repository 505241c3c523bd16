"""Holds what is on the disk against git-lfs's pointers, and refuses with the command that mends it."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shlex
from collections.abc import Mapping

from headrace.errors import DataVersionError, Where
from headrace.loop.versions.commands import git_command, is_here, shown, within
from headrace.loop.versions.content import CHUNK_BYTES, hashes_of
from headrace.loop.versions.git import root_of
from headrace.loop.versions.lfs_pointers import Pointer

__all__ = ["check_lfs", "digest_of"]


def digest_of(path: pathlib.Path, pointers: Mapping[str, Pointer]) -> str:
    """Returns what git-lfs says of a file; of a folder, the sha256 of the list that `sha256sum` would print."""
    if not path.is_dir() and len(pointers) == 1:
        return f"sha256:{next(iter(pointers.values())).oid}"
    lines = (f"{pointer.oid}  ".encode() + os.fsencode(name) + b"\n" for name, pointer in sorted(pointers.items()))
    return f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"


def check_lfs(
    path: pathlib.Path, files: Mapping[str, int], stated: Mapping[str, Pointer], unpulled: Mapping[str, Pointer]
) -> None:
    """Passes if every file that has a pointer is on the disk with the content that it states.

    Args:
        path: File or folder of data.
        files: What is on the disk.
        stated: Pointers that git keeps.
        unpulled: Pointers on the disk.

    Raises:
        DataVersionError: a file is missing, is a pointer, or has other content; names the first one.

    Cost: reads every byte, with one thread per core.
    """
    places = {name: path / name if path.is_dir() else path for name in {*stated, *unpulled}}
    if unpulled:
        raise _unpulled(path, places, sorted(unpulled))
    root = root_of(path)
    for name, pointer in stated.items():
        place = places[name]
        if name not in files:
            raise DataVersionError(
                f"{shown(place)} is missing: git keeps a git-lfs pointer for it, sha256 {pointer.oid}",
                where=Where(path=os.fspath(place)),
                do=git_command(root, "checkout --", place),
            )
        if files[name] != pointer.size:
            raise _differs(root, place, "size in bytes", files[name], pointer.size)
    for name, found in zip(stated, hashes_of((places[name] for name in stated), _sha256), strict=True):
        if found != stated[name].oid:
            raise _differs(root, places[name], "sha256", found, stated[name].oid)


def _sha256(path: pathlib.Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            state.update(chunk)
    return state.hexdigest()


def _unpulled(path: pathlib.Path, places: Mapping[str, pathlib.Path], names: list[str]) -> DataVersionError:
    first, more = places[names[0]], len(names) - 1
    asked = first if not more else path
    root = root_of(path)
    relative = within(root, asked) or "."
    # `--include` takes patterns with commas between them, from the root of the repository.
    is_plain = relative != "." and not set(relative) & set(",*?[]!\\")
    command = "git" if is_here(root) else f"git -C {shlex.quote(str(root))}"
    return DataVersionError(
        f"{shown(first)} is a git-lfs pointer, and not its content"
        + (f"; so {'is 1 more file' if more == 1 else f'are {more:,} more files'}" if more else ""),
        where=Where(path=os.fspath(first)),
        do=f"{command} lfs pull" + (f" --include {shlex.quote(relative)}" if is_plain else ""),
    )


def _differs(
    root: pathlib.Path | None, place: pathlib.Path, what: str, found: object, said: object
) -> DataVersionError:
    return DataVersionError(
        f"{shown(place)} is not the version that its git-lfs pointer states: {what} is {found}, stated {said}",
        where=Where(path=os.fspath(place)),
        do=[
            f"{git_command(root, 'checkout --', place)}    # if git is right",
            f"{git_command(root, 'add', place)}    # if the data are right",
        ],
    )
