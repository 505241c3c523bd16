"""What the control group of a process says of its memory (Linux, versions 1 and 2). Standard library only: see sampling.py."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator

__all__ = ["ControlGroup", "control_group_of"]

_ROOT = pathlib.Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 62
"""Version 1 says "no limit" with a number near the largest there is."""


@dataclasses.dataclass(frozen=True)
class ControlGroup:
    """The folder in which the kernel shows the memory of a control group; all numbers are of the group and those within."""

    folder: pathlib.Path
    version: int
    root: pathlib.Path
    """The outermost group that this process sees."""

    def shmem_bytes(self) -> int | None:
        """Shared memory that is charged to the group, mapped or not: /dev/shm, memfd, shared mappings; None: not told."""
        wanted = "shmem" if self.version == 2 else "total_shmem"
        for line in _read(self.folder / "memory.stat").splitlines():
            name, _, number = line.partition(" ")
            if name == wanted and number.isdigit():
                return int(number)
        return None

    def peak_bytes(self) -> int | None:
        """The most that the group ever used, page cache included, since it exists; None: not told (Linux 5.19)."""
        text = _read(self.folder / ("memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"))
        return int(text) if text.isdigit() else None

    def limit_bytes(self) -> int | None:
        """The tightest limit of the group and of those around it; None: there is none."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        limits = [int(text) for folder in self._outwards() if (text := _read(folder / name)).isdigit()]
        return min((limit for limit in limits if limit < _NO_LIMIT), default=None)

    def _outwards(self) -> Iterator[pathlib.Path]:
        folder = self.folder
        while True:
            yield folder
            if folder in {self.root, folder.parent}:
                return
            folder = folder.parent


def control_group_of(pid: int | None = None, root: pathlib.Path = _ROOT) -> ControlGroup | None:
    """Returns the control group that a process's memory is charged to; None: there is none, or it is not shown.

    Args:
        pid: Default: this process.
        root: Where control groups are mounted.

    Inside a container the path that the kernel tells may be that of the host, which is not visible; the outermost visible
    group is the container's own then.
    """
    lines = [line.split(":", 2) for line in _read(pathlib.Path(f"/proc/{pid or os.getpid()}/cgroup")).splitlines()]
    paths = {name: row[2] for row in lines if len(row) == 3 for name in row[1].split(",")}
    for version, name, top, file in (
        (2, "", root, "memory.stat"),
        (1, "memory", root / "memory", "memory.limit_in_bytes"),
    ):
        if name not in paths:
            continue
        for folder in (top / paths[name].strip("/"), top):
            with contextlib.suppress(OSError):
                if (folder / file).is_file():
                    return ControlGroup(folder=folder, version=version, root=top)
    return None


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
