"""The memory of the slots: one nameless file per pool, one section of it per worker, mapped on both sides.

    section of worker w:   words   slot 0   slot 1 (larger)   ...   not touched yet, so it costs nothing

A section begins with one page of words, one for each slot, which say whether the slot is FREE or TAKEN. They are what
the two sides tell each other: the worker takes a free slot by writing TAKEN, and the consumer gives it back by writing
FREE. Each word is eight aligned bytes that only one side may change at a time. No lock, no message: so a slot can be
given back by a finalizer, in any thread, in the middle of a garbage collection.

The file is far larger than the machine's memory, but only touched pages exist. So a slot can always be laid at the end,
and one mapping is enough for all. It is made through ctypes, because Python's own `mmap` keeps a descriptor for as long
as it lives, and here it may live as long as the last batch that somebody keeps.

Nameless, so that nothing can remain even if every process is killed: the kernel frees it with the last mapping.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

__all__ = ["FREE", "MAX_SLOTS", "TAKEN", "Section", "SlotMemory", "nameless_file", "whole_pages"]

FREE, TAKEN = 0, 1
MAX_SLOTS = mmap.PAGESIZE // 8
"""Slots that one worker may have: one page of words."""
_RESERVE = 4  # times the machine's memory: address space for slots that are laid anew because they became too small
_LEAST_RESERVE = 1 << 26  # where even this is refused (a tight `ulimit -v`), slots are not worth the trouble
_SHM = Path("/dev/shm")  # noqa: S108 - memory, as the kernel provides it; the file there never has a name


class SlotMemory:
    """The file and its mapping; in a worker, only the section of that worker is mapped.

    Raises:
        OSError: no file or not enough address space.
    """

    def __init__(self, num_workers: int) -> None:
        self.num_workers = num_workers
        self.fd = nameless_file("headrace-slots")
        try:
            self.section_bytes, self._mapping = self._map(num_workers)
        except BaseException:
            self.close_file()
            raise

    def _map(self, num_workers: int) -> tuple[int, _Mapping]:
        """Reserves as much as the system allows."""
        total = _RESERVE * os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
        while True:
            section_bytes = whole_pages(total // num_workers)
            try:
                os.ftruncate(self.fd, section_bytes * num_workers)
                return section_bytes, _Mapping(self.fd, 0, section_bytes * num_workers)
            except OSError:
                total //= 8
                if total < _LEAST_RESERVE:
                    raise

    def section(self, worker: int) -> Section:
        """Returns the part of one worker, as the consumer sees it."""
        return Section(self._mapping, worker * self.section_bytes, self.section_bytes)

    def close_file(self) -> None:
        """Gives the descriptor back; the mapping lives on until its last section is forgotten. May be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Section:
    """The words and slots of one worker. Offsets count from the begin of the section."""

    def __init__(self, mapping: _Mapping, begin: int, size: int) -> None:
        self._mapping = mapping
        self._address = mapping.address + begin - mapping.begin
        self._begin = begin
        self.size = size
        self.words = (ctypes.c_int64 * MAX_SLOTS).from_address(self._address)

    @classmethod
    def attach(cls, fd: int, begin: int, size: int) -> Section:
        """Maps one section of the file, in a worker.

        Raises:
            OSError: not enough address space.
        """
        return cls(_Mapping(fd, begin, size), begin, size)

    @property
    def first_slot(self) -> int:
        """Offset behind the words."""
        return mmap.PAGESIZE

    def block(self, start: int, size: int) -> Any:
        """Returns these bytes as a ctypes array; it does not keep the mapping alive, its finalizer must."""
        return (ctypes.c_ubyte * size).from_address(self._address + start)

    def provide(self, fd: int, start: int, size: int) -> bool:
        """Makes sure that memory is there before it is written to; False if the system has none left.

        Otherwise a full /dev/shm, where `memfd_create` is missing, would end the process by SIGBUS.
        """
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(fd, self._begin + start, size)
            except OSError as error:
                return error.errno not in {errno.ENOSPC, errno.ENOMEM, errno.EFBIG}
        return True

    def drop(self, start: int, size: int) -> None:
        """Gives whole pages back to the system, which then read as zeros; where it cannot, they stay until the end."""
        advice = getattr(mmap, "MADV_REMOVE", None)  # Linux
        if advice is not None and size > 0:
            _libc().madvise(self._address + start, size, advice)


class _Mapping:
    """Bytes of a file at an address, until this object dies."""

    def __init__(self, fd: int, begin: int, size: int) -> None:
        address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, begin)
        if address in (None, _MAP_FAILED):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self.address: int = address
        self.begin = begin
        weakref.finalize(self, _libc().munmap, address, size).atexit = False  # at exit, arrays may still be in use


_MAP_FAILED = ctypes.c_void_p(-1).value


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    address, size = ctypes.c_void_p, ctypes.c_size_t
    libc.mmap.restype = address
    libc.mmap.argtypes = (address, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong)
    libc.munmap.argtypes = (address, size)
    libc.madvise.argtypes = (address, size, ctypes.c_int)
    return libc


def whole_pages(size: int) -> int:
    """Rounds up to pages."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def nameless_file(name: str) -> int:
    """Opens a file in memory that no directory lists; the name is for people who look at a process."""
    if hasattr(os, "memfd_create"):  # Linux
        with contextlib.suppress(OSError):
            return os.memfd_create(name)
    with tempfile.TemporaryFile(dir=_SHM if _SHM.is_dir() else None) as file:
        return os.dup(file.fileno())
