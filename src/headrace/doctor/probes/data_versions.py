"""Holds opened files against what DVC has recorded of them. Reads only; needs no DVC."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator

from headrace.doctor.evidence.source import VersionMismatch
from headrace.errors import DataVersionError
from headrace.loop.versions.content import files_of
from headrace.loop.versions.dvc_files import LOCK, Recorded, folders_above, leaves_files_out, read_records
from headrace.loop.versions.dvc_hashes import file_md5, folder_md5

__all__ = ["compare_with_records"]

MAX_RECORDS = 200
MAX_FILES = 20_000
MAX_HASHED_BYTES = 64 * 2**20
"""Content is hashed up to this size: about a tenth of a second."""


def compare_with_records(paths: Iterable[str]) -> tuple[int, tuple[VersionMismatch, ...]]:
    """Returns how many records concern these files, and in what the data differ from them.

    Raises:
        MissingExtra: there are records, and nothing to read them with.
    """
    known: dict[pathlib.Path, tuple[Recorded, ...]] = {}
    concerned: dict[pathlib.Path, Recorded] = {}
    for path in paths:
        for folder in folders_above(pathlib.Path(path)):
            if folder not in known:
                known[folder] = tuple(_records_of(folder))
            for one in known[folder]:
                if path == str(one.path) or path.startswith(f"{one.path}{os.sep}"):
                    concerned.setdefault(one.path, one)
    found = [mismatch for one in concerned.values() for mismatch in _differences(one)]
    return len(concerned), tuple(found)


def _records_of(folder: pathlib.Path) -> Iterator[Recorded]:
    """Outputs only: what a stage reads may be changed before it runs again."""
    try:
        files = [entry for entry in sorted(folder.glob("*.dvc")) if entry.is_file()][:MAX_RECORDS]
    except OSError:
        return
    for file in [*files, folder / LOCK]:
        try:
            records = read_records(file)
        except (OSError, DataVersionError):
            continue
        yield from (one for one in records if one.role == "out" and one.is_cached)


def _differences(one: Recorded) -> Iterator[VersionMismatch]:
    """The first thing in which data and record differ: the others follow from it."""
    is_folder = one.path.is_dir()
    if is_folder and leaves_files_out(one.path):
        return  # what is left out is for DVC to say
    try:
        files = files_of(one.path, follow=False, broken=True)
    except OSError:
        return
    size = sum(files.values())
    if not files or len(files) > MAX_FILES:
        return

    def differs(what: str, recorded: object, found: object) -> VersionMismatch:
        return VersionMismatch(
            record=str(one.source), path=str(one.path), what=what, recorded=str(recorded), found=str(found)
        )

    if one.num_files is not None and is_folder and one.num_files != len(files):
        yield differs("number of files", one.num_files, len(files))
    elif one.size is not None and one.size != size:
        yield differs("size in bytes", one.size, size)
    elif one.md5 is not None and size <= MAX_HASHED_BYTES:
        found = (
            folder_md5({name: file_md5(one.path / name, is_plain=one.is_plain_md5) for name in files})
            if is_folder
            else file_md5(one.path, is_plain=one.is_plain_md5)
        )
        if found != one.md5:
            yield differs("md5", one.md5, found)
