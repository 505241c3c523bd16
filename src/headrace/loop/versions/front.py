"""`headrace.data_version`: which data these are, and whether they are what is recorded of them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable
from typing import Any

from headrace.errors import DataVersionError, Where
from headrace.loop.versions.commands import absolute, git_command, shown
from headrace.loop.versions.content import files_of, fingerprint_of
from headrace.loop.versions.dvc_check import check_dvc
from headrace.loop.versions.dvc_files import Recorded
from headrace.loop.versions.dvc_hashes import folder_md5
from headrace.loop.versions.find import records_of
from headrace.loop.versions.git import base_of, git_text, root_of
from headrace.loop.versions.lfs_check import check_lfs, digest_of
from headrace.loop.versions.lfs_pointers import Pointer, pointers_in_git, pointers_on_disk
from headrace.loop.versions.version import DataVersion

__all__ = ["data_version"]


def data_version(path: str | os.PathLike[str], *, content: bool = False, check: bool = True) -> DataVersion:
    """Returns which version of the data lies at a path, as DVC, git-lfs or git state it, and a fingerprint of the files.

        version = hr.data_version("data/train")
        checkpoint = hr.Checkpointer("runs/digits", model=model, data=version)

    Looked for, in this order: a `.dvc` file or `dvc.lock` beside or above the path (or in it) that records it; pointers of
    git-lfs; git. None of these programs need be installed, but where there are `.dvc` files, PyYAML or DVC reads them.

    Args:
        path: File or folder of data.
        content: The fingerprint covers the content too. Default: paths and sizes only.
        check: Refuse data that are missing, not fetched, or not what is stated. Default True; False only notes down.

    Returns:
        The version; `as_dict()` makes plain values of it.

    Raises:
        DataVersionError: there is nothing at the path; with `check`, the data are not the stated ones: says the first file,
            both hashes, and the command that mends it. A `.dvc` file or `dvc.lock` is malformed.
        MissingExtra: there are `.dvc` files, and nothing to read them with.

    Cost: one `stat` per file. `check` reads every byte of what DVC or git-lfs describe, and `content` every byte, each with
        one thread per core: about as fast as the disk. With many ranks, ask on one.
    """
    place = absolute(path)
    facts = _of_dvc(records_of(place), place, check=check)
    files = files_of(place, broken=not check)
    if facts is None:
        facts = _of_git(place, files, check=check)
    if not place.exists() and (check or facts["kind"] == "none"):
        raise _nothing(place, facts)
    return DataVersion(
        path=os.fspath(path), fingerprint=fingerprint_of(place, files, content=content), has_content=content, **facts
    )


def _of_dvc(records: tuple[Recorded, ...], place: pathlib.Path, *, check: bool) -> dict[str, Any] | None:
    if not records:
        return None
    checked = [check_dvc(one, place if place.is_relative_to(one.path) else one.path) for one in records if check]
    first = records[0]
    digest = first.md5
    if len(records) > 1:
        digest = folder_md5({one.path.relative_to(place).as_posix(): str(one.md5) for one in records})
    return {
        "kind": "dvc-lock" if first.is_lock else "dvc",
        "digest": digest,
        "num_files": _sum(_num_files(one) for one in records),
        "size_bytes": _sum(one.size for one in records),
        "source": ", ".join(dict.fromkeys(shown(one.source) for one in records)),
        "is_checked": bool(checked) and all(checked),
        **_commit(first.source if len(records) == 1 else place),
    }


def _num_files(record: Recorded) -> int | None:
    """As stated; DVC states none of a file, which is one."""
    is_file = record.md5 is not None and not record.md5.endswith(".dir")
    return 1 if is_file else record.num_files


def _of_git(place: pathlib.Path, files: dict[str, int], *, check: bool) -> dict[str, Any]:
    """git-lfs, git, or nobody."""
    kept = pointers_in_git(place)
    in_git, num_kept = ({}, 0) if kept is None else kept
    on_disk = pointers_on_disk(place, files)
    stated: dict[str, Pointer] = {**on_disk, **in_git}
    common = {"source": None, "is_checked": False}
    if stated:
        if check:
            check_lfs(place, files, in_git, on_disk)
        return {
            "kind": "git-lfs",
            "digest": digest_of(place, stated),
            "num_files": len(stated),
            "size_bytes": sum(pointer.size for pointer in stated.values()),
            "source": shown(place),
            "is_checked": check,
            **_commit(place),
        }
    base = base_of(place)
    if num_kept:
        return {
            "kind": "git",
            "digest": git_text(base, "rev-parse", "--verify", f"HEAD:./{_from(base, place)}"),
            "num_files": num_kept,
            "size_bytes": None,
            **common,
            **_commit(place, ignored=True),
        }
    return {
        "kind": "none",
        "digest": None,
        "num_files": None,
        "size_bytes": None,
        "commit": None,
        "is_dirty": None,
        **common,
    }


def _commit(place: pathlib.Path, *, ignored: bool = False) -> dict[str, Any]:
    """The last commit that changed a path, and whether the path differs from it."""
    base, name = base_of(place), _from(base_of(place), place) or "."
    literal = "--literal-pathspecs"
    commit = git_text(base, literal, "log", "-1", "--format=%H", "--", name)
    also = ["--ignored"] if ignored else []  # what git ignores is data too, and in no commit
    status = git_text(base, literal, "status", "--porcelain", *also, "--", name)
    return {"commit": commit or None, "is_dirty": None if status is None else bool(status)}


def _from(base: pathlib.Path, place: pathlib.Path) -> str:
    return "" if base == place else place.relative_to(base).as_posix()


def _sum(numbers: Iterable[int | None]) -> int | None:
    """None if one is not stated."""
    values = list(numbers)
    return None if None in values else sum(value for value in values if value is not None)


def _nothing(place: pathlib.Path, facts: dict[str, Any]) -> DataVersionError:
    in_git = facts["kind"] == "git"
    return DataVersionError(
        f"there is nothing at {shown(place)}" + ("" if in_git else ", and no .dvc file, dvc.lock or git speaks of it"),
        where=Where(path=os.fspath(place)),
        do=git_command(root_of(place), "checkout --", place) if in_git else None,
    )
