"""The record: which data these are, in values that fit into a checkpoint or a tracker."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

__all__ = ["DataVersion", "Kind"]

Kind = Literal["dvc", "dvc-lock", "git-lfs", "git", "none"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DataVersion:
    """One version of one file or folder of data."""

    path: str
    """File or folder, as it was given."""
    kind: Kind
    """Who describes it: a `.dvc` file, a `dvc.lock`, git-lfs pointers, git itself, or nobody."""
    digest: str | None
    """As the tool states it: DVC's md5 (`.dir` behind it: of a folder), `sha256:` and git-lfs's oid, git's object id.

    Of a folder with pointers of git-lfs: sha256 of the lines `oid  path`, as `sha256sum` prints them. Of a folder that holds
    several outputs of DVC: the hash that DVC would give to a folder of them. None: nothing states one.
    """
    num_files: int | None
    """Files, as stated. None: not stated."""
    size_bytes: int | None
    """Bytes, as stated. None: not stated."""
    source: str | None
    """The file that states it; of git-lfs the path itself, under which git keeps the pointer. None: no file does."""
    commit: str | None
    """Commit of git that changed `source`, or else the data, last. None: no repository, no git, or never committed."""
    is_dirty: bool | None
    """Whether `source`, or else the data, differ from the last commit. None: not known."""
    fingerprint: str | None
    """Digest of what is on the disk: relative paths and sizes, and the content if `has_content`. None: there is nothing.

    It depends neither on the order in which the disk lists files nor on their times.
    """
    has_content: bool
    """Whether `fingerprint` covers the content too."""
    is_checked: bool
    """Whether the content on the disk was held against `digest`, and is what it says."""

    def as_dict(self) -> dict[str, Any]:
        """Returns plain values, for a checkpoint's manifest, a tracker's settings, or JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        said = f"{self.path}: {self.kind} {self.digest or self.fingerprint}"
        return said if self.is_dirty is not True else f"{said}, not as it was committed"
