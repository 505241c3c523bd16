"""FolderSource: data files in class folders, `root/<class>/.../file`, or in a plain folder without classes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import xxhash

from headrace.engine.source.class_folders import class_names, find_class_folders
from headrace.engine.source.manifest import Manifest
from headrace.engine.source.scan import Scan, quoted
from headrace.errors import ConfigurationError, SampleId, SourceError, Where, nearest

__all__ = ["FileRecord", "FolderSource"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One file as it lies on disk; a stage decodes it."""

    id: str
    """Path relative to the root, with `/` on every system."""
    path: str
    """Where it was read from: an absolute path."""
    data: bytes
    """The whole content."""
    label: int | None
    """Place of the class in `classes`; None: a folder without classes."""
    class_name: str | None
    """Name of the class folder; None as for `label`."""


class FolderSource:
    """The files below a folder, one record each, with the name of the first folder as class.

    Order: by class name, then by relative path, both compared by Unicode code points ('B' before 'a', '10' before
    '2'). It does not depend on the file system, the locale or the machine. Ids are paths relative to `root`.

    Refused, each with its name and the way out: a missing or empty root, hidden folders (`.ipynb_checkpoints`),
    class folders without data, files beside the class folders, broken links, links back to a folder above, names
    that are not valid UTF-8. Passed over as litter of the system: files with a leading dot, `Thumbs.db`,
    `desktop.ini`. Links to files and folders are followed.

    Args:
        root: The folder.
        labels: True: the folders directly in `root` are the classes. False: no classes; files anywhere below.
        classes: Names of the classes in the order of their labels, e.g. `train.classes` for a validation folder that
            lacks some of them. Default: the class folders, sorted; labels are their ranks.
        extensions: Endings of data files, in any case: `[".png", ".jpg"]`. Default: every file.
        ignore: Names or relative paths to pass over, as patterns: `["*.txt", ".cache", "test/*"]`.

    Raises:
        SourceError: the folder cannot be used as it is; nothing is left out silently.
        ConfigurationError: the arguments do not fit together.

    Cost: one `stat` per file when made, about 4 s for 1,000,000 local files; afterwards 24 bytes per file beside its
    relative path. Reading opens one file per record.
    """

    runs_user_code = False

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        labels: bool = True,
        classes: Sequence[str] | None = None,
        extensions: Sequence[str] | str | None = None,
        ignore: Sequence[str] | str = (),
    ) -> None:
        # Absolute, because a worker or the script may change its working directory.
        self.root = Path(root).absolute()
        _refuse_root(self.root)
        if classes is not None and not labels:
            raise ConfigurationError(
                "classes are given, but labels=False asks for none", do="leave out one of `classes` and `labels`"
            )
        scan = Scan(root=self.root, extensions=_endings(extensions), ignore=_listed(ignore))
        self.classes: list[str] | None = None
        if labels:
            folders = find_class_folders(scan)
            self.classes = class_names(self.root, folders.keys(), classes)
            label_of = self.class_to_idx
            rows = [(path, label_of[name], size) for name, files in folders.items() for path, size in files]
        else:
            rows = [(path, -1, size) for path, size in scan.files_below("")]
        if not rows:
            raise SourceError(
                "no data files in the folder",
                where=Where(path=str(self.root)),
                why=None if scan.extensions is None else f"no file below it ends in {quoted(scan.extensions)}",
                do="check the path, `extensions` and `ignore`",
            )
        self.manifest = _packed(self.root, rows)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Label of each class; torchvision's name. Empty for a folder without classes."""
        return {name: label for label, name in enumerate(self.classes or ())}

    def __len__(self) -> int:
        return len(self.manifest)

    def read_many(self, indices: Sequence[int]) -> list[FileRecord]:
        """Returns one `FileRecord` per index; OSError names the file if one cannot be read."""
        return [self._read(int(index)) for index in indices]

    def _read(self, index: int) -> FileRecord:
        sample_id = self.manifest[index]
        path = f"{self.root}/{sample_id}"
        label = int(self.manifest.column("label")[index])
        class_name = None if self.classes is None else self.classes[label]
        return FileRecord(
            id=sample_id,
            path=path,
            data=Path(path).read_bytes(),
            label=None if class_name is None else label,
            class_name=class_name,
        )

    def sample_id(self, index: int) -> str:
        """Returns the path relative to the root."""
        return self.manifest[index]

    def index_of(self, sample_id: SampleId) -> int:
        """Returns the row of a relative path; ValueError if there is none."""
        if not isinstance(sample_id, str):
            raise ValueError(f"ids are relative paths, not {sample_id!r}")  # noqa: TRY004 as list.index does
        return self.manifest.index(sample_id)

    def locate(self, index: int) -> str:
        """Returns the absolute path."""
        return f"{self.root}/{self.manifest[index]}"

    def fingerprint(self) -> str:
        """Returns a digest (XXH3-128) of relative paths, sizes and labels.

        Times and the place of the root do not count: a copy of the data is the same data. A file rewritten with
        other bytes of the same number goes unseen; reading every byte would cost a whole epoch.
        """
        digest = xxhash.xxh3_128(b"folder-1")
        for part in ("\0".join(self.classes or ()).encode(), *self.manifest.buffers()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FolderSource):
            return NotImplemented
        return (self.root, self.classes, self.manifest) == (other.root, other.classes, other.manifest)

    def __hash__(self) -> int:
        return hash((self.root, self.manifest))

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", {len(self.classes):,} classes"
        return f"FolderSource({str(self.root)!r}: {len(self):,} files{classes})"


def _listed(names: Sequence[str] | str) -> tuple[str, ...]:
    """A single name counts as a list of one, not as a list of letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def _endings(extensions: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """Lower case, each with its dot."""
    if extensions is None:
        return None
    return tuple("." + extension.lower().removeprefix(".") for extension in _listed(extensions))


def _refuse_root(root: Path) -> None:
    """Raises SourceError unless the root is a folder."""
    if root.is_dir():
        return
    if root.exists():
        raise SourceError(
            "the root is a file, not a folder", where=Where(path=str(root)), do=f"give the folder: {str(root.parent)!r}"
        )
    siblings = [path.name for path in root.parent.iterdir()] if root.parent.is_dir() else []
    raise SourceError(
        f"the folder does not exist{nearest(root.name, siblings)}",
        where=Where(path=str(root)),
        why=f"relative paths start at {Path.cwd()}",
        do="check the path, or fetch the data first",
    )


def _packed(root: Path, rows: Sequence[tuple[str, int, int]]) -> Manifest:
    """Packs (path, label, size) rows; SourceError for a path that cannot be text."""
    try:
        return Manifest((row[0] for row in rows), label=(row[1] for row in rows), size=(row[2] for row in rows))
    except UnicodeEncodeError as error:
        raise SourceError(
            f"a file name is not valid UTF-8: {os.fsencode(error.object)!r}",
            where=Where(path=str(root)),
            why="ids are text: they are written into states and reports",
            do="rename the file (convmv does), or leave it out with `ignore`",
        ) from error
