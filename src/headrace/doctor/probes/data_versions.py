"""Holds opened files against what DVC has recorded of them. Reads only; needs no DVC.

Sources: DVC, "User guide: .dvc files" and "dvc.lock"; the hash of a folder is the md5 of the JSON list of its files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Iterable, Iterator

from headrace.doctor.evidence.source import VersionMismatch

__all__ = ["Recorded", "compare_with_records", "records_in"]

MAX_LEVELS = 12
"""Folders above a file in which records are looked for, at most up to the root of the repository."""
MAX_RECORDS = 200
MAX_FILES = 20_000
MAX_HASHED_BYTES = 64 * 2**20
"""Content is hashed up to this size: about a tenth of a second."""
_KEY = re.compile(r"^(?P<indent> *)(?P<dash>- )?(?P<key>[\w.\-/]+):(?: (?P<value>.*))?$")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One output that DVC tracks."""

    record: str
    path: str
    md5: str | None
    size: int | None
    num_files: int | None
    is_plain_md5: bool
    """False: written by DVC before 3.0, which took line ends of text files for equal."""


def records_in(text: str, record: pathlib.Path) -> Iterator[Recorded]:
    """Yields what a `.dvc` file or `dvc.lock` records; only the few lines of YAML that DVC writes are understood."""
    folder, section, item_indent = record.parent, "", -1
    items: list[dict[str, str]] = []
    for line in text.splitlines():
        match = _KEY.match(line)
        if match is None:
            continue
        indent, value = len(match["indent"]), (match["value"] or "").strip().strip("'\"")
        if match["dash"] is None and not value:
            if indent <= item_indent or item_indent < 0:
                section, item_indent = match["key"], -1
            continue
        if section != "outs":
            if match["key"] == "wdir" and not indent:
                folder = record.parent / value
            continue
        if match["dash"] and item_indent in {-1, indent}:
            item_indent = indent
            items.append({})
        if match["key"] == "wdir" and not indent and match["dash"] is None:
            folder = record.parent / value
        elif items and (indent + 2 * bool(match["dash"])) == item_indent + 2:
            items[-1][match["key"]] = value
        elif match["dash"] is None and indent <= item_indent:
            section, item_indent = "", -1
    for item in items:
        if item.get("path") and item.get("cache", "true") != "false":
            yield Recorded(
                record=str(record),
                path=os.path.normpath(folder / item["path"]),
                md5=item.get("md5"),
                size=int(item["size"]) if item.get("size", "").isdigit() else None,
                num_files=int(item["nfiles"]) if item.get("nfiles", "").isdigit() else None,
                is_plain_md5=item.get("hash") == "md5",
            )


def compare_with_records(paths: Iterable[str]) -> tuple[int, tuple[VersionMismatch, ...]]:
    """Returns how many records concern these files, and in what the data differ from them."""
    known: dict[pathlib.Path, tuple[Recorded, ...]] = {}
    concerned: dict[str, Recorded] = {}
    for path in paths:
        for folder in _folders_above(pathlib.Path(path)):
            if folder not in known:
                known[folder] = tuple(_records_of(folder))
            for one in known[folder]:
                if path == one.path or path.startswith(one.path + os.sep):
                    concerned.setdefault(one.path, one)
    found = [mismatch for one in concerned.values() for mismatch in _differences(one)]
    return len(concerned), tuple(found)


def _folders_above(path: pathlib.Path) -> Iterator[pathlib.Path]:
    for folder in list(path.parents)[:MAX_LEVELS]:
        yield folder
        if (folder / ".dvc").is_dir() or (folder / ".git").exists():
            return


def _records_of(folder: pathlib.Path) -> Iterator[Recorded]:
    try:
        files = [entry for entry in sorted(folder.glob("*.dvc")) if entry.is_file()][:MAX_RECORDS]
    except OSError:
        return
    for file in [*files, folder / "dvc.lock"]:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        yield from records_in(text, file)


def _differences(one: Recorded) -> Iterator[VersionMismatch]:
    """The first thing in which data and record differ: the others follow from it."""
    path = pathlib.Path(one.path)
    is_folder = path.is_dir()
    if is_folder and any((folder / ".dvcignore").is_file() for folder in [path, *_folders_above(path)]):
        return  # what is left out is for DVC to say
    try:
        files = sorted(_files_in(path)) if is_folder else [path]
        sizes = [file.stat().st_size for file in files]
    except OSError:
        return
    if len(files) > MAX_FILES:
        return

    def differs(what: str, recorded: object, found: object) -> VersionMismatch:
        return VersionMismatch(record=one.record, path=one.path, what=what, recorded=str(recorded), found=str(found))

    if one.num_files is not None and is_folder and one.num_files != len(files):
        yield differs("number of files", one.num_files, len(files))
    elif one.size is not None and one.size != sum(sizes):
        yield differs("size in bytes", one.size, sum(sizes))
    elif one.md5 is not None and sum(sizes) <= MAX_HASHED_BYTES:
        hashes = _folder_hashes(path, files) if is_folder else _file_hashes(path)
        accepted = hashes[:1] if one.is_plain_md5 else hashes
        if one.md5 not in accepted:
            yield differs("md5", one.md5, accepted[0])


def _files_in(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in {".dvc", ".git"}]
        yield from (pathlib.Path(place) / name for name in names)


def _file_hashes(path: pathlib.Path) -> list[str]:
    """As it is, and with the line ends of Unix, which older versions of DVC took for text files."""
    content = path.read_bytes()
    return [_md5(content), _md5(content.replace(b"\r\n", b"\n"))]


def _folder_hashes(folder: pathlib.Path, files: Iterable[pathlib.Path]) -> list[str]:
    kinds: list[list[dict[str, str]]] = [[], []]
    for file in files:
        for entries, value in zip(kinds, _file_hashes(file), strict=True):
            entries.append({"md5": value, "relpath": file.relative_to(folder).as_posix()})
    return [
        _md5(json.dumps(sorted(entries, key=lambda entry: entry["relpath"]), sort_keys=True).encode()) + ".dir"
        for entries in kinds
    ]


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
