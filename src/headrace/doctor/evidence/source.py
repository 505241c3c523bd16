"""What lies around the files of a data set: class folders, and records of which version of the data is meant."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence

__all__ = ["ClassFolder", "ClassFolders", "DataVersions", "VersionMismatch"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClassFolder:
    """One class of the data set and what lies under its name."""

    name: str
    number: int
    """Its class number."""
    kind: str
    """`folder`, `file`, or `nothing`: no such entry, or the data set has no folder."""
    num_files: int
    """Data files in the folder and below, of the kind that samples are read from; counting ends at 1,000."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClassFolders(Evidence):
    """The classes that the data set counts, as far as their names are those of folders or it lists their names."""

    root: str | None
    """The folder in which the class folders lie; None: not known."""
    said_by: str | None
    """Attribute that lists the classes, e.g. `Photos.classes`; None: no list, the labels follow the sorted folder."""
    classes: tuple[ClassFolder, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VersionMismatch:
    """One thing in which data differ from what is recorded of them."""

    record: str
    """Path of the `.dvc` file or `dvc.lock`."""
    path: str
    """File or folder that is recorded there."""
    what: str
    """`number of files`, `size in bytes`, `md5` of the content."""
    recorded: str
    found: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DataVersions(Evidence):
    """Data that were opened, held against DVC's records beside and above them."""

    num_records: int
    """Recorded files and folders to which opened files belong."""
    mismatches: tuple[VersionMismatch, ...]
