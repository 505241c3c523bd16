"""Which folders are classes, and under which labels."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from headrace.engine.source.scan import Scan, quoted
from headrace.errors import ConfigurationError, SourceError, Where, nearest

__all__ = ["class_names", "find_class_folders"]


def find_class_folders(scan: Scan) -> dict[str, list[tuple[str, int]]]:
    """Returns for each folder directly in the root its (path, size) files; both in code point order.

    Raises:
        SourceError: there are no class folders, one of them holds no data, or files lie beside them.
    """
    folders, loose = scan.entries("")
    if not folders:
        raise _no_class_folders(scan.root, len(loose))
    if loose:
        names = sorted(entry.name for entry in loose)
        raise SourceError(
            f"{len(names):,} files lie beside the class folders and have no class: {quoted(names)}",
            where=Where(path=str(scan.root / names[0])),
            do=f"ignore={names[:5]}    # or a pattern: ['*{Path(names[0]).suffix}']",
        )
    found = {name: scan.files_below(name) for name in sorted(folders)}
    empty = [name for name, files in found.items() if not files]
    if empty:
        raise SourceError(
            f"class folder without data: {quoted(empty)}",
            where=Where(path=str(scan.root / empty[0])),
            why="it would count as a class that no sample has, and move the labels of the classes after it"
            if scan.extensions is None
            else f"no file below it ends in {quoted(scan.extensions)}",
            do=[
                f"rmdir {shlex.quote(str(scan.root / empty[0]))}    # if it is left over",
                f"ignore={empty[:5]}    # to keep but not count it",
            ],
        )
    return found


def class_names(root: Path, folders: Iterable[str], wanted: Sequence[str] | None) -> list[str]:
    """Returns the names of the classes in the order of their labels.

    Args:
        root: For messages.
        folders: Names of the class folders, in code point order.
        wanted: The user's own list; a class without a folder may stand in it, a folder without a class may not exist.
    """
    if wanted is None:
        return list(folders)
    repeated = sorted({name for name in wanted if list(wanted).count(name) > 1})
    if repeated:
        raise ConfigurationError(f"`classes` names a class twice: {quoted(repeated)}")
    unknown = [name for name in folders if name not in set(wanted)]
    if unknown:
        raise SourceError(
            f"class folder that is not in `classes`: {quoted(unknown)}{nearest(unknown[0], wanted)}",
            where=Where(path=str(root / unknown[0])),
            do=f"ignore={unknown[:5]}    # or add it to `classes`",
        )
    return list(wanted)


def _no_class_folders(root: Path, num_files: int) -> SourceError:
    """The error for a root without folders."""
    if not num_files:
        return SourceError(
            "no data files in the folder", where=Where(path=str(root)), do="check the path, `extensions` and `ignore`"
        )
    return SourceError(
        f"no class folders: {num_files:,} data files lie directly in the root",
        where=Where(path=str(root)),
        why="by default the folders directly in the root are the classes",
        do=[
            f"folder({str(root)!r}, labels=False)    # records without labels",
            "or give each class a folder of its own: root/<class>/file",
        ],
    )
