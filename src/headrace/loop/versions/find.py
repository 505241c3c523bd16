"""Finds what DVC records of a path: the path itself, a folder that it lies in, or what lies in it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

from headrace.loop.versions.content import OF_REPOSITORIES
from headrace.loop.versions.dvc_files import LOCK, Recorded, folders_above, read_records

__all__ = ["records_of"]


def records_of(path: pathlib.Path) -> tuple[Recorded, ...]:
    """Returns the record of a path; several if the path is a folder that holds several recorded things; or none.

    Looked at are the `.dvc` files and `dvc.lock` beside the path and above it, up to the root of the repository, and those
    in it. What a stage makes goes before what a stage reads.

    Raises:
        DataVersionError: one of these files is malformed.
        MissingExtra: there are such files, and nothing to read them with.
    """
    beside = path.with_name(f"{path.name}.dvc")  # as `dvc add` names it: not every other file need be read
    if beside.is_file() and (own := [one for one in read_records(beside) if one.path == path]):
        return tuple(own[:1])
    known = [record for folder in folders_above(path) for file in _files_in(folder) for record in read_records(file)]
    outs = [one for one in known if one.role == "out"]
    if around := [one for one in outs if path.is_relative_to(one.path)]:
        return (max(around, key=lambda one: len(one.path.parts)),)
    outs += [one for file in _files_below(path) for one in read_records(file) if one.role == "out"]
    if within := {one.path: one for one in outs if one.path.is_relative_to(path)}:
        return tuple(within[place] for place in sorted(within))
    return tuple(one for one in known if one.role == "dep" and path.is_relative_to(one.path))[:1]


def _files_in(folder: pathlib.Path) -> list[pathlib.Path]:
    try:
        return [file for file in (*sorted(folder.glob("*.dvc")), folder / LOCK) if file.is_file()]
    except OSError:
        return []  # no right to list a folder above


def _files_below(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Within a folder of data; not in what belongs to DVC or to git."""
    for place, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in OF_REPOSITORIES]
        yield from (pathlib.Path(place, name) for name in sorted(names) if name.endswith(".dvc") or name == LOCK)
