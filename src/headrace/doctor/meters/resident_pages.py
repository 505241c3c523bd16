"""Asks the kernel how many pages of an open file are in memory, without root and without touching them (Linux).

Two ways. `cachestat(2)` (Linux 6.5 and newer) counts pages of the file itself. `mincore(2)` looks at a mapping of it. Both
tell the truth only to who owns the file or may write to it: to anybody else `mincore` says that all pages are resident
(since Linux 5.2) and `cachestat` refuses (since 6.14), as the answer would betray what others read. Some sandboxes say
"resident" always. So each way has to pass a trial on a file of which the answer is known before it is believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from typing import IO

import numpy as np

__all__ = ["Lookers", "find_lookers", "may_be_told", "pages_between"]

PAGE = mmap.PAGESIZE
_CACHESTAT = 451
"""The number of the system call on the machines of `_NUMBERED_ALIKE` (Linux, syscall tables)."""
_NUMBERED_ALIKE = frozenset(
    ("x86_64", "i686", "aarch64", "armv7l", "riscv64", "ppc64le", "ppc64", "s390x", "loongarch64")
)
_WINDOW = 1 << 30
"""Bytes that are mapped at once for `mincore`: it wants one byte per page."""
_TRIAL_BYTES = 8 << 20
"""Larger than one huge page: one written byte cannot make all of it resident."""

Looker = Callable[[int, int, int], int]
"""(descriptor, offset, length > 0) -> resident pages among those that the bytes touch. Raises OSError."""


class Lookers:
    """The ways that passed their trial, and why not if there is none."""

    def __init__(self, own_pages: Looker | None, mapped_pages: Looker | None) -> None:
        self.own_pages = own_pages
        """By `cachestat`; None: this kernel has it not, or it fails."""
        self.mapped_pages = mapped_pages
        """By `mincore`; None: it fails, or says "resident" whatever is asked."""

    def named(self, *, only_mapped: bool) -> list[tuple[str, Looker]]:
        """Those to be tried, the best first; `only_mapped` where the pages belong to another file, as with overlays."""
        ways = [("cachestat", None if only_mapped else self.own_pages), ("mincore", self.mapped_pages)]
        return [(name, way) for name, way in ways if way is not None]


@functools.cache
def find_lookers() -> Lookers:
    """Returns the ways that can be believed here. Cost: below a millisecond, once per process."""
    return Lookers(*(way if _passes(way) else None for way in (_cachestat, _mincore)))


def may_be_told(path: str | os.PathLike[str], owner: int) -> bool:
    """True for files of which the kernel tells this process the truth: its own, and those it may write to."""
    return owner == os.geteuid() or os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def pages_between(offset: int, length: int) -> int:
    """Pages that `length` bytes from `offset` touch."""
    return -(-(offset + length) // PAGE) - offset // PAGE if length > 0 else 0


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted"))


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,
    )
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    return libc


def _cachestat(descriptor: int, offset: int, length: int) -> int:
    if platform.machine() not in _NUMBERED_ALIKE:
        raise OSError(errno.ENOSYS, "the number of cachestat is not known for this machine")
    asked, counts = _Range(offset, length), _Counts()
    failed = _libc().syscall(
        ctypes.c_long(_CACHESTAT),
        ctypes.c_long(descriptor),
        ctypes.byref(asked),
        ctypes.byref(counts),
        ctypes.c_long(0),
    )
    if failed:
        raise _error()
    return int(counts.cache)


def _mincore(descriptor: int, offset: int, length: int) -> int:
    first, end = offset // PAGE * PAGE, -(-(offset + length) // PAGE) * PAGE
    return sum(_mapped(descriptor, start, min(_WINDOW, end - start)) for start in range(first, end, _WINDOW))


def _mapped(descriptor: int, start: int, size: int) -> int:
    """The mapping is never touched, so a file that others cut meanwhile does no harm."""
    libc = _libc()
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, start)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise _error()
    try:
        answer = ctypes.create_string_buffer(size // PAGE)
        if libc.mincore(address, size, answer):
            raise _error()
    finally:
        libc.munmap(address, size)
    return int((np.frombuffer(answer.raw, np.uint8) & 1).sum())  # the other bits are reserved


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _passes(way: Looker) -> bool:
    """Tries it on a file of which only the first page is there."""
    if sys.platform != "linux":
        return False
    try:
        with _trial_file() as file:
            file.truncate(_TRIAL_BYTES)
            os.pwrite(file.fileno(), b"x", 0)
            return way(file.fileno(), 0, PAGE) == 1 and way(file.fileno(), _TRIAL_BYTES - PAGE, PAGE) == 0
    except OSError:
        return False


def _trial_file() -> IO[bytes]:
    with contextlib.suppress(OSError, AttributeError):  # a Python that was built for older systems has it not
        return os.fdopen(os.memfd_create("headrace-trial", os.MFD_CLOEXEC), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
