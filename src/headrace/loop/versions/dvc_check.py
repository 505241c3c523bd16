"""Holds what is on the disk against what DVC records, and refuses with the command that mends it."""

from __future__ import annotations

import functools
import os
import pathlib
from typing import NoReturn

from headrace.errors import DataVersionError, Where
from headrace.loop.versions.commands import dvc_command, git_command, shown
from headrace.loop.versions.content import files_of, hashes_of
from headrace.loop.versions.dvc_cache import is_in_cache, listing_of
from headrace.loop.versions.dvc_files import Recorded, leaves_files_out, root_of
from headrace.loop.versions.dvc_hashes import file_md5, folder_md5
from headrace.loop.versions.git import base_of, git_text

__all__ = ["check_dvc"]


def check_dvc(record: Recorded, path: pathlib.Path) -> bool:
    """Returns True if the data are what the record says; False if that cannot be told.

    Args:
        record: What is recorded.
        path: What is asked for: the recorded path, or something in it. Of a folder whose listing is in DVC's cache, only this
            part is read.

    Raises:
        DataVersionError: something is missing, differs, or is not recorded; names the first such file.

    Cost: reads every byte, with one thread per core.
    """
    if not path.exists():
        raise _missing(record, path, record.md5)
    if record.md5 is None and record.files is None:
        return False
    is_folder = record.files is not None or str(record.md5).endswith(".dir")
    if record.path.is_dir() is not is_folder:
        kinds = ("a folder", "a file") if is_folder else ("a file", "a folder")
        raise _differs(
            record, f"{shown(record.path)} is {kinds[1]}, and {shown(record.source)} records {kinds[0]}", md5=record.md5
        )
    if not is_folder:
        return _check_file(record)
    listing = listing_of(record)
    return _check_whole(record) if listing is None else _check_listed(record, path, listing)


def _check_file(record: Recorded) -> bool:
    size = record.path.stat().st_size
    if record.size not in {None, size}:
        _refuse(record, record.path, "size in bytes", size, record.size)
    (found,) = hashes_of([record.path], functools.partial(file_md5, is_plain=record.is_plain_md5))
    if found != record.md5:
        _refuse(record, record.path, "md5", found, record.md5)
    return True


def _check_listed(record: Recorded, path: pathlib.Path, listing: dict[str, str]) -> bool:
    """File by file, so the first difference has a name."""
    inside = "" if path == record.path else path.relative_to(record.path).as_posix()
    wanted = {
        name: md5 for name, md5 in listing.items() if not inside or name == inside or name.startswith(f"{inside}/")
    }
    found = {
        name if not inside or path.is_file() else f"{inside}/{name}": size
        for name, size in files_of(path, follow=False, broken=True).items()
    }
    if path.is_file():
        found = dict.fromkeys([inside], 0)
    for name in sorted(wanted.keys() - found.keys()):
        raise _missing(record, record.path / name, wanted[name])
    added = sorted(found.keys() - wanted.keys())
    if added and not leaves_files_out(record.path):
        more = f", and {len(added) - 1:,} more" if len(added) > 1 else ""
        raise _differs(
            record,
            f"{shown(record.path / added[0])} is not in the version that {shown(record.source)} records{more}",
            md5=record.md5,
        )
    names = sorted(wanted)
    hashed = functools.partial(file_md5, is_plain=record.is_plain_md5)
    for name, md5 in zip(names, hashes_of((record.path / name for name in names), hashed), strict=True):
        if md5 != wanted[name]:
            _refuse(record, record.path / name, "md5", md5, wanted[name])
    return True


def _check_whole(record: Recorded) -> bool:
    """By the hash of the folder, which does not say which file differs."""
    if leaves_files_out(record.path):
        return False
    files = files_of(record.path, follow=False, broken=True)
    if not files and record.num_files != 0:
        raise _missing(record, record.path, record.md5)
    fetch = f"{_dvc(record, 'fetch')}    # brings the list of files into DVC's cache; then the file is named"
    for what, found, said in (
        ("number of files", len(files), record.num_files),
        ("size in bytes", sum(files.values()), record.size),
    ):
        if said not in {None, found}:
            _refuse(record, record.path, what, found, said, do=fetch)
    hashed = functools.partial(file_md5, is_plain=record.is_plain_md5)
    hashes = hashes_of((record.path / name for name in files), hashed)
    whole = folder_md5(dict(zip(files, hashes, strict=True)))
    if whole != record.md5:
        _refuse(record, record.path, "md5", whole, record.md5, do=fetch)
    return True


def _refuse(
    record: Recorded, path: pathlib.Path, what: str, found: object, said: object, *, do: str | None = None
) -> NoReturn:
    where = f"{shown(path)} is not the version that {shown(record.source)} records"
    raise _differs(
        record,
        f"{where}: {what} is {found}, recorded {said}",
        md5=said if what == "md5" and path != record.path else record.md5,
        do=do,
    )


def _missing(record: Recorded, path: pathlib.Path, md5: str | None) -> DataVersionError:
    if _is_in_git(record):
        do = git_command(root_of(record.source), "checkout --", path)
    elif record.role == "dep":
        do = f"{_dvc(record, 'status')}    # a stage reads it: what DVC says of it"
    else:
        do = _dvc(record, "checkout" if is_in_cache(record, md5) else "pull")
    return DataVersionError(
        f"{shown(path)} is missing: {shown(record.source)} records it with md5 {md5}",
        where=Where(path=os.fspath(record.source)),
        do=do,
    )


def _differs(record: Recorded, what: str, *, md5: object, do: str | None = None) -> DataVersionError:
    """Two ways to mend it: to have the recorded data, or to record the data; `do` is named before them."""
    # What was never pulled cannot be checked out. DVC asks before it replaces a file, but a program cannot answer.
    verb = "checkout --force" if is_in_cache(record, str(md5)) else "pull --force"
    back = f"{_dvc(record, verb)}    # if the record is right: replaces what is on the disk"
    if _is_in_git(record):
        back = f"{git_command(root_of(record.source), 'checkout --', record.path)}    # if the record is right"
    elif record.role == "dep":
        back = f"{_dvc(record, 'status')}    # a stage reads it: what DVC says of it"
    if record.role == "dep":
        ways = [back, "dvc repro    # if the data are right"]
    elif record.is_lock:
        ways = [back, "dvc repro    # if the stage is to make it anew"]
    else:
        ways = [back, f"{_dvc(record, 'commit --force')}    # if the data are right: records them"]
    return DataVersionError(what, where=Where(path=os.fspath(record.source)), do=[*([do] if do else []), *ways])


def _is_in_git(record: Recorded) -> bool:
    """True if git keeps the data and not DVC's cache: outputs with `cache: false`, and most of what stages read."""
    return not record.is_cached or bool(
        git_text(base_of(record.path), "--literal-pathspecs", "ls-files", "--", os.fspath(record.path))
    )


def _dvc(record: Recorded, verb: str) -> str:
    return dvc_command(root_of(record.source), verb, record.target)
