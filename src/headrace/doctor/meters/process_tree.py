"""Memory and descriptors of a process and all its descendants at one moment (Linux). Standard library only: see sampling.py.

The memory of a tree is no sum of resident sets: pages that a worker shares with its parent would count twice. The kernel
divides each page by the number of processes that have it mapped (proportional set size, PSS), and that sum is right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib

__all__ = ["ProcessTree", "TreeMemory"]


@dataclasses.dataclass
class TreeMemory:
    """Sums over the processes of a tree; those that end while they are read are left out."""

    num_processes: int = 0
    num_unread: int = 0
    """Processes whose memory may not be read, or is not told by this kernel: the sums, but `rss`, are without them."""
    rss: int = 0
    """Bytes: resident sets, shared pages counted in each process."""
    pss: int = 0
    anon: int = 0
    file: int = 0
    shmem: int = 0
    swap: int = 0
    open_files: int = 0
    """Descriptors of the process that has the most of them."""
    file_limit: int = 0
    """How many that process may have; 0: not told, or no limit."""


_SUMS = {b"Pss": "pss", b"Pss_Anon": "anon", b"Pss_File": "file", b"Pss_Shmem": "shmem", b"SwapPss": "swap"}


class ProcessTree:
    """A process and its descendants, as they come and go.

    A process that was seen once stays in the tree while it lives, also when its parent has ended and it was adopted.
    """

    def __init__(self, root: int, *, without: frozenset[int] = frozenset()) -> None:
        """`without`: processes that are left out, with their descendants."""
        self._without = without
        self._alive: dict[int, int] = {}
        """When each known process was started: numbers of processes are used again."""
        started = _started(root)
        if started is not None:
            self._alive[root] = started

    def look(self) -> TreeMemory:
        """Reads all processes that live now. Cost: some 0.5 ms per process, and more for those with many mappings."""
        total = TreeMemory()
        for pid in self._living():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                _add(total, pid)
        return total

    def _living(self) -> list[int]:
        self._alive = {pid: started for pid, started in self._alive.items() if _started(pid) == started}
        waiting, children = list(self._alive), _Children()
        while waiting:
            for child in children.of(waiting.pop()):
                if child not in self._alive and child not in self._without:
                    started = _started(child)
                    if started is not None:
                        self._alive[child] = started
                        waiting.append(child)
        return list(self._alive)


class _Children:
    """Asks the kernel for the children of a process; where it does not tell them, looks at all processes once."""

    def __init__(self) -> None:
        self._all: dict[int, list[int]] | None = None
        if not pathlib.Path(f"/proc/self/task/{os.getpid()}/children").exists():
            self._all = {}
            for name in os.listdir("/proc"):  # noqa: PTH208 - as cheap as it can be
                fields = _stat(int(name)) if name.isdigit() else None
                if fields is not None:
                    self._all.setdefault(int(fields[1]), []).append(int(name))

    def of(self, pid: int) -> list[int]:
        if self._all is not None:
            return self._all.get(pid, [])
        found: list[int] = []
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - as cheap as it can be
                with contextlib.suppress(OSError):
                    found += map(int, _bytes(f"/proc/{pid}/task/{task}/children").split())
        return found


def _add(total: TreeMemory, pid: int) -> None:
    """Raises ProcessLookupError or FileNotFoundError, before anything is added, if the process has ended."""
    resident = int(_bytes(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if not resident:  # it is ending
        return
    try:
        rollup = _bytes(f"/proc/{pid}/smaps_rollup")
    except PermissionError:
        rollup = b""
    except FileNotFoundError:
        if _started(pid) is None:
            raise
        rollup = b""  # a kernel before 4.14
    total.num_processes += 1
    total.num_unread += not rollup
    total.rss += resident
    for line in rollup.splitlines():
        name, _, value = line.partition(b":")
        if name in _SUMS:
            field = _SUMS[name]
            setattr(total, field, getattr(total, field) + 1024 * int(value.split()[0]))
    with contextlib.suppress(OSError, ValueError, IndexError):
        number = _num_files(pid)
        if number > total.open_files:
            total.open_files, total.file_limit = number, _file_limit(pid)


def _num_files(pid: int) -> int:
    folder = f"/proc/{pid}/fd"
    size = os.stat(folder).st_size  # noqa: PTH116 - since Linux 6.2 the number of descriptors; else 0
    return size or len(os.listdir(folder))  # noqa: PTH208 - as cheap as it can be


def _file_limit(pid: int) -> int:
    for line in _bytes(f"/proc/{pid}/limits").splitlines():
        if line.startswith(b"Max open files"):
            soft = line.split()[3]
            return int(soft) if soft.isdigit() else 0
    return 0


def _started(pid: int) -> int | None:
    """When a process was started, in ticks since the machine was; None: it has ended."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in b"ZXx" else int(fields[19])


def _stat(pid: int) -> list[bytes] | None:
    """Fields from the third on (proc_pid_stat(5)); the second, the name, may hold blanks and brackets."""
    try:
        return _bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None


def _bytes(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as cheap as it can be
        return file.read()
