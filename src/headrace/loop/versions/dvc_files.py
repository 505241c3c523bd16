"""What `.dvc` files and `dvc.lock` record of data.

Source: DVC, "User guide: .dvc files", "dvc.lock"; `dvc/schema.py`. Written by DVC 1 to 3.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from headrace.errors import DataVersionError, Where
from headrace.loop.versions.commands import absolute, shown
from headrace.loop.versions.yaml_text import read_yaml

__all__ = ["LOCK", "Recorded", "folders_above", "leaves_files_out", "read_records", "records_in", "root_of"]

LOCK = "dvc.lock"
MAX_LEVELS = 12
"""Folders above a file in which records are looked for, at most up to the root of the repository."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One file or folder that DVC tracks."""

    path: pathlib.Path
    """Absolute."""
    source: pathlib.Path
    """The `.dvc` file or `dvc.lock`."""
    role: Literal["out", "dep"]
    """What a stage makes or what is added, or what a stage reads."""
    md5: str | None
    """`.dir` behind it: of a folder. None: another hash, or none yet."""
    size: int | None
    num_files: int | None
    is_plain_md5: bool
    """False: written by DVC before 3.0, which took line ends of text files for equal."""
    is_cached: bool
    """Whether DVC keeps the content; else git does, or nobody."""
    files: Mapping[str, str] | None = None
    """md5 by relative path, where the record itself lists the files (remotes with versions)."""

    @property
    def is_lock(self) -> bool:
        """Recorded by a stage of a pipeline."""
        return self.source.name == LOCK

    @property
    def target(self) -> pathlib.Path:
        """What the commands of DVC call it: the `.dvc` file, or the output of a stage."""
        return self.path if self.is_lock else self.source


def read_records(file: pathlib.Path) -> tuple[Recorded, ...]:
    """Returns what a `.dvc` file or `dvc.lock` records.

    Raises:
        DataVersionError: it is malformed, or of a version that is not known here.
        MissingExtra: neither DVC nor PyYAML is installed.
        OSError: it cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataVersionError(f"{shown(file)} is no text: {error}", where=Where(path=os.fspath(file))) from error
    return tuple(records_in(text, file))


def records_in(text: str, file: pathlib.Path) -> Iterator[Recorded]:
    """Yields what the text of `file` records: the outputs, and the dependencies of a `dvc.lock`."""
    said = read_yaml(text, file) or {}
    if not isinstance(said, dict):
        raise _malformed(file, f"it holds {_kind(said)} where DVC writes keys")
    folder = absolute(file.parent)
    if file.name != LOCK:
        yield from _entries(said.get("outs"), file, folder / str(said.get("wdir") or "."), "out")
        return
    schema = said.get("schema")
    if schema is not None and str(schema) != "2.0":
        raise _malformed(file, f"its schema is {schema!r}, and only '2.0' is known here")
    stages = said if schema is None else said.get("stages") or {}  # DVC 1 wrote the stages alone
    for stage in stages.values() if isinstance(stages, dict) else ():
        if not isinstance(stage, dict):
            raise _malformed(file, f"a stage is {_kind(stage)}")
        yield from _entries(stage.get("outs"), file, folder, "out")
        yield from _entries(stage.get("deps"), file, folder, "dep")


def _entries(entries: Any, file: pathlib.Path, folder: pathlib.Path, role: Literal["out", "dep"]) -> Iterator[Recorded]:
    if not isinstance(entries or [], list):
        raise _malformed(file, f"{role}s is {_kind(entries)}, and not a list")
    for entry in entries or []:
        if not isinstance(entry, dict) or not entry.get("path"):
            raise _malformed(file, f"an entry of {role}s has no path")
        path = str(entry["path"])
        if "://" in path:
            continue  # on a remote, and never on this disk
        yield Recorded(
            path=absolute(folder / path),
            source=absolute(file),
            role=role,
            md5=str(entry["md5"]) if entry.get("md5") else None,
            size=_number(entry, "size", file),
            num_files=_number(entry, "nfiles", file),
            is_plain_md5=entry.get("hash") == "md5",
            is_cached=str(entry.get("cache", True)).lower() != "false",
            files=_listed(entry.get("files")),
        )


def _listed(files: Any) -> dict[str, str] | None:
    """md5 by path, if every file has one."""
    if not isinstance(files, list) or not all(isinstance(one, dict) for one in files):
        return None
    found = {str(one.get("relpath")): str(one["md5"]) for one in files if one.get("md5")}
    return found if len(found) == len(files) else None


def _number(entry: Mapping[str, Any], key: str, file: pathlib.Path) -> int | None:
    value = entry.get(key)
    if value in {None, ""}:
        return None
    if not str(value).isdecimal():
        raise _malformed(file, f"{key} of {entry['path']} is {value!r}, and not a number")
    return int(str(value))


def _malformed(file: pathlib.Path, what: str) -> DataVersionError:
    return DataVersionError(
        f"{shown(file)} is not as DVC writes it: {what}",
        where=Where(path=os.fspath(file)),
        do="dvc status    # what DVC says of it",
    )


def _kind(value: Any) -> str:
    return (
        "keys" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"the text {str(value)[:40]!r}"
    )


def folders_above(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields the folders above a path, nearest first, up to the root of its repository."""
    for folder in list(path.parents)[:MAX_LEVELS]:
        yield folder
        if (folder / ".dvc").is_dir() or (folder / ".git").exists():
            return


def root_of(path: pathlib.Path) -> pathlib.Path | None:
    """Returns the root of the DVC repository that a path lies in; None: in none."""
    return next((folder for folder in path.parents if (folder / ".dvc").is_dir()), None)


def leaves_files_out(path: pathlib.Path) -> bool:
    """True if a `.dvcignore` in or above a folder names patterns: which files count is then for DVC to say.

    `dvc init` writes one that holds comments only.
    """
    for folder in (path, *folders_above(path)):
        try:
            lines = (folder / ".dvcignore").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        if any(line.strip() and not line.startswith("#") for line in lines):
            return True
    return False
