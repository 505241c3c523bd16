"""Walks a folder of data files: a stable order, nothing followed twice, nothing left out silently."""

from __future__ import annotations

import dataclasses
import fnmatch
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace.errors import SourceError, Where

__all__ = ["Scan", "quoted"]

LITTER = frozenset({"Thumbs.db", "desktop.ini"})
"""What file managers leave behind without a leading dot; passed over like `.DS_Store` and `._image.jpg`."""


def quoted(names: Sequence[str], limit: int = 5) -> str:
    """Returns `'a', 'b' and 3 more`."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The rules of one walk: which files count, and what is refused.

    Hidden folders, broken links, links that lead back to a folder above, and things that are neither file nor folder
    are refused, because passing over them would lose data without a word. Hidden files and file managers' litter
    are passed over.
    """

    root: Path
    extensions: tuple[str, ...] | None
    """Lower-case endings with their dot; None = every file."""
    ignore: tuple[str, ...]
    """Patterns (`fnmatch`) of names or relative paths that are passed over, with everything below them."""

    def takes(self, name: str) -> bool:
        """True if a file of that name is data."""
        return self.extensions is None or name.lower().endswith(self.extensions)

    def entries(self, folder: str) -> tuple[list[str], list[os.DirEntry[str]]]:
        """Returns what lies directly in a folder (path relative to the root, `""` = the root): folders, data files.

        Raises:
            SourceError: the folder cannot be listed, or holds something that is refused.
        """
        folders: list[str] = []
        files: list[os.DirEntry[str]] = []
        try:
            with os.scandir(self.root / folder) as found:
                for entry in found:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if self.is_ignored(path, entry.name):
                        continue
                    if entry.is_dir():
                        folders.append(path)
                    elif entry.name.startswith(".") or entry.name in LITTER:
                        continue
                    elif entry.is_file():
                        if self.takes(entry.name):
                            files.append(entry)
                    elif self.takes(entry.name):
                        raise self.refusal_of_odd_entry(entry, path)
        except OSError as error:
            raise SourceError(
                f"cannot list the folder: {error.strerror}", where=Where(path=str(error.filename or self.root))
            ) from error
        self.refuse_hidden(folders)
        return folders, files

    def is_ignored(self, path: str, name: str) -> bool:
        """True if a pattern of the user names this entry."""
        # As it stands first, because a name may hold the signs of a pattern: `image[1].png`.
        return any(
            rule in {name, path} or fnmatch.fnmatchcase(name, rule) or fnmatch.fnmatchcase(path, rule)
            for rule in self.ignore
        )

    def refusal_of_odd_entry(self, entry: os.DirEntry[str], path: str) -> SourceError:
        """The error for a broken link, a device, a socket, a pipe."""
        broken = entry.is_symlink()
        return SourceError(
            f"{path!r} is a link to a file that is not there: {str(Path(entry.path).readlink())!r}"
            if broken
            else f"{path!r} is neither a file nor a folder",
            where=Where(path=entry.path),
            why="its content was probably not fetched (git-annex, DVC, an unmounted disk)" if broken else None,
            do=[f"ignore=[{path!r}]    # or a pattern; to leave it out"],
        )

    def refuse_hidden(self, folders: Sequence[str]) -> None:
        """Raises SourceError if one of these folders is hidden."""
        hidden = sorted(path for path in folders if path.rpartition("/")[2].startswith("."))
        if hidden:
            patterns = sorted({path.rpartition("/")[2] for path in hidden})
            raise SourceError(
                f"hidden folder among the data: {quoted(hidden)}",
                where=Where(path=str(self.root / hidden[0])),
                why="notebooks and caches leave such folders behind; their files would count as data or as a class",
                do=[
                    f"rm -r {shlex.quote(str(self.root / hidden[0]))}",
                    f"ignore={patterns}    # to keep but not read it",
                ],
            )

    def files_below(self, folder: str) -> list[tuple[str, int]]:
        """Returns (relative path, size in bytes) of every data file in and below a folder, by path in code point order.

        Paths have `/` between their parts on every system.

        Cost: about 4 s for 1,000,000 local files; most of it is one `stat` per file, for its size.
        """
        return sorted((path, entry.stat().st_size) for path, entry in self._walk(folder, ()))

    def _walk(self, folder: str, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yields the files below a folder; `above` holds (device, inode) of the folders on the way to it."""
        status = (self.root / folder).stat()
        here = (status.st_dev, status.st_ino)
        if here in above:
            raise SourceError(
                f"{folder!r} is a link back to a folder above it",
                where=Where(path=str(self.root / folder)),
                why="following it would read the same files without end",
                do=f"ignore=[{folder!r}]    # or delete the link",
            )
        folders, files = self.entries(folder)
        for entry in files:
            yield (f"{folder}/{entry.name}" if folder else entry.name), entry
        for below in folders:
            yield from self._walk(below, (*above, here))
