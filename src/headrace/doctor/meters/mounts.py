"""On which file system an open file lies, and what that says about its pages (Linux)."""

from __future__ import annotations

import dataclasses
import os
import pathlib

__all__ = ["Mount", "mount_of", "mount_of_path", "read_mounts"]

_NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "lustre", "gpfs", "beegfs", "glusterfs", "orangefs"),
        *("pvfs2", "wekafs", "panfs", "coda", "9p", "virtiofs", "vboxsf", "hgfs", "prl_fs", "drvfs"),
    }
)
"""Served by another machine, or by the host of this one: what its cache holds cannot be asked from here."""
_OWN_CACHE = frozenset({"zfs"})
"""Keeps its data in a cache of its own, which neither `cachestat` nor `mincore` sees."""
_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
"""The page cache is all there is."""
_STACKED = frozenset({"ecryptfs", "squashfs"})
"""Made from stored blocks that may be in memory when its own pages are not."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One row of /proc/self/mountinfo (Linux, Documentation/filesystems/proc.rst, section 3.5)."""

    point: str
    """Folder at which it is mounted."""
    type: str
    """Type of the file system: `ext4`, `nfs4`, `fuse.sshfs`."""
    source: str
    """What is mounted: a device, a server, or a word."""
    options: frozenset[str]
    """Options of the mount and of the file system."""

    @property
    def blind_spot(self) -> str | None:
        """Why nothing can be said about the cache of its files; None: the page cache tells all."""
        if self.type in _NETWORK:
            return f"{self.type} is a network file system: what its server keeps in memory is not known here"
        if self.type.partition(".")[0] == "fuse":  # `fuseblk` is a local disk with a driver in user space
            return f"{self.type} is served by a program: what it keeps in memory is not known here"
        if self.type in _OWN_CACHE:
            return f"{self.type} keeps a cache of its own, which the kernel's page cache says nothing about"
        if self.options & {"dax", "dax=always"}:
            return "the file system is mounted with dax: its files are read past the page cache"
        return None

    @property
    def never_cold(self) -> str | None:
        """Why its files cannot be called cold, whatever the page cache says; None: they can."""
        if self.type in _MEMORY:
            return f"files of {self.type} live in memory or swap and are never cold"
        if self.type in _STACKED:
            return f"files of {self.type} are made from others, which may be in memory"
        if self.source.startswith("/dev/loop"):
            return "the file system lies in a file (a loop device), which may be in the page cache itself"
        return None

    @property
    def is_overlay(self) -> bool:
        """True where the pages belong to a file of another layer: only a mapping leads there, `cachestat` sees none."""
        return self.type == "overlay"


def read_mounts() -> dict[int, Mount]:
    """Returns the mounts that this process sees, by number; empty where the kernel does not tell."""
    try:
        text = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        place, kind = fields.split(" "), rest.split(" ")
        if len(place) < 6 or len(kind) < 2:
            continue
        options = frozenset(",".join([place[5], *kind[2:]]).split(","))
        found[int(place[0])] = Mount(point=_plain(place[4]), type=kind[0], source=_plain(kind[1]), options=options)
    return found


def mount_of(descriptor: int, mounts: dict[int, Mount]) -> Mount | None:
    """Returns the mount through which a file was opened; None: the kernel does not tell.

    The kernel's own number of the mount, not a comparison of paths: mounts hide each other, and links lead elsewhere.
    """
    try:
        text = pathlib.Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="utf-8")
    except OSError:
        return None
    number = next((line.split()[1] for line in text.splitlines() if line.startswith("mnt_id:")), None)
    return None if number is None else mounts.get(int(number))


def mount_of_path(path: str | os.PathLike[str]) -> Mount | None:
    """Returns the mount on which a file or folder lies; it is not opened for reading."""
    if not hasattr(os, "O_PATH"):
        return None
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return mount_of(descriptor, read_mounts())
    finally:
        os.close(descriptor)


def _plain(text: str) -> str:
    """Blanks, tabs, newlines and backslashes come as octal escapes."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
