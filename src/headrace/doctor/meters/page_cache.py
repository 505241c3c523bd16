"""How much of the planned files is in the page cache, and how to get it out or in: always verified, never assumed.

A rate without the state of the cache it was measured in says nothing, so each measured number carries one of four labels:

    cold-verified   at most 2 % of the planned pages were in memory
    warm-verified   at least 98 %, from beginning to end
    mixed           something between, with the fraction before and after
    unknown         nobody can tell, with the reason

Only planned files are touched, and only by reading: no root, no `drop_caches`, no changed contents; times of last access
stay as they are where the kernel allows it (files of our own). "Cold" is said of this kernel: the host of a virtual
machine, or a disk controller, may still hold the blocks (see preflight.py).
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import pathlib
import stat
from collections.abc import Iterator, Sequence
from typing import Literal

from headrace.doctor.meters.mounts import Mount, mount_of, read_mounts
from headrace.doctor.meters.resident_pages import PAGE, find_lookers, may_be_told, pages_between

__all__ = ["CacheLabel", "FileRange", "Residency", "evict", "label", "resident", "warm"]

MOST_RANGES = 2000
"""Ranges that are looked at, spread evenly over the planned ones: enough to know a fraction to about one percent."""
COLD = 0.02
WARM = 0.98
"""Pages of neighbours and of the kernel's read-ahead keep a fraction from being exactly 0 or 1."""
_FOLIO = 4 << 20
"""Pages are kept in groups of up to this size, and a group is only dropped as a whole: twice a huge page of most machines."""
_CHUNK = 1 << 20

Label = Literal["cold-verified", "warm-verified", "mixed", "unknown"]


@dataclasses.dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes of a file that will be read."""

    path: str | os.PathLike[str]
    offset: int = 0
    """First byte."""
    length: int | None = None
    """Bytes; None: to the end of the file. What lies beyond the end is left out."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """What the page cache holds of the planned ranges at one moment."""

    num_planned: int
    """Ranges that were asked about."""
    num_seen: int
    """Ranges of which the kernel told the truth, empty ones among them; at most `MOST_RANGES` are looked at."""
    num_unseen: int
    """Ranges that were looked at in vain."""
    pages: int
    """Pages of the ranges that were seen."""
    resident_pages: int
    """Those of them that are in memory."""
    means: frozenset[str]
    """How it was asked: `cachestat`, `mincore`; empty: not at all."""
    file_systems: frozenset[str]
    """Types of the file systems on which the ranges lie."""
    blind_spots: tuple[str, ...]
    """Why ranges were not seen, the most frequent reason first."""

    @property
    def fraction(self) -> float | None:
        """Share of the seen pages that is in memory, 0 to 1; None: there are none, or too many ranges were not seen."""
        if not self.pages or self.num_unseen > COLD * (self.num_seen + self.num_unseen):
            return None
        return self.resident_pages / self.pages


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CacheLabel:
    """In which state of the cache something was measured."""

    label: Label
    before: float | None
    """Share of the planned pages in memory when it began, 0 to 1; None: not known."""
    after: float | None
    """The same when it ended; None: not known, or not asked."""
    why: str | None
    """Why the label is `unknown`; None else."""


def resident(ranges: Sequence[FileRange]) -> Residency:
    """Returns how much of the planned ranges is in memory. Reads nothing of them.

    Args:
        ranges: Planned ranges; of more than `MOST_RANGES`, evenly spread ones are looked at.

    Cost: about 0.1 ms per range.
    """
    mounts = read_mounts()
    seen = [_look(one, mounts) for one in _spread(ranges)]
    blind = collections.Counter(one.blind for one in seen if one.blind is not None)
    return Residency(
        num_planned=len(ranges),
        num_seen=sum(one.blind is None for one in seen),
        num_unseen=blind.total(),
        pages=sum(one.pages for one in seen),
        resident_pages=sum(one.resident for one in seen),
        means=frozenset(one.means for one in seen if one.means is not None),
        file_systems=frozenset(one.file_system for one in seen if one.file_system is not None),
        blind_spots=tuple(reason for reason, _ in blind.most_common()),
    )


def evict(ranges: Sequence[FileRange]) -> Residency:
    """Asks the kernel to forget the planned ranges, and returns what is in memory then.

    Changed pages are written to the disk first, as they could not be forgotten otherwise. Pages that somebody has mapped,
    and whole files in memory (tmpfs), stay: the answer says so. Where pages are kept in large groups, neighbours within
    4 MiB are forgotten as well. May be asked for any file that can be read.
    """
    for one in ranges:
        _forget(one)
    return resident(ranges)


def warm(ranges: Sequence[FileRange]) -> Residency:
    """Reads the planned ranges once, and returns what is in memory then: less than all if memory does not suffice.

    Files that cannot be read are left out; the answer says so.
    """
    buffer = bytearray(_CHUNK)
    for one in ranges:
        _read(one, memoryview(buffer))
    return resident(ranges)


def label(before: Residency, after: Residency | None = None) -> CacheLabel:
    """Returns the label of something that was measured.

    Args:
        before: Asked right before it began; decides whether it was cold.
        after: Asked right after it ended. A cold start may well end warm; a warm start counts as warm only if it
            ended so, too. Default: the moment of `before` is all there is to label.
    """
    first, last = before.fraction, None if after is None else after.fraction
    if first is None:
        return CacheLabel(label="unknown", before=None, after=last, why=_why(before))
    if after is not None and last is None and first > COLD:
        return CacheLabel(label="unknown", before=first, after=None, why=_why(after))
    state: Label = "mixed"
    if first <= COLD:
        state = "cold-verified"
    elif first >= WARM and (last is None or last >= WARM):
        state = "warm-verified"
    return CacheLabel(label=state, before=first, after=last, why=None)


def _why(seen: Residency) -> str:
    if not seen.num_planned:
        return "it is not known which files are read"
    if not seen.blind_spots:
        return "the planned files are empty"
    looked = seen.num_seen + seen.num_unseen
    return f"{seen.num_unseen:,} of {looked:,} planned files or ranges could not be looked at: {seen.blind_spots[0]}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One range: its pages, or why they are not known."""

    pages: int = 0
    resident: int = 0
    means: str | None = None
    file_system: str | None = None
    blind: str | None = None


def _look(asked: FileRange, mounts: dict[int, Mount]) -> _Seen:
    try:
        with _opened(asked.path) as (descriptor, about):
            mount = mount_of(descriptor, mounts)
            if mount is None:
                return _Seen(blind="it is not known on which file system the file lies")
            offset, length = _within(asked, about.st_size)
            if mount.blind_spot is not None:
                return _Seen(file_system=mount.type, blind=mount.blind_spot)
            if not length:
                return _Seen(file_system=mount.type)
            if not may_be_told(asked.path, about.st_uid):
                return _Seen(
                    file_system=mount.type,
                    blind="the kernel tells about a file only to its owner and to those who may write to it",
                )
            return _count(descriptor, offset, length, mount)
    except FileNotFoundError:
        return _Seen(blind="the file is gone")
    except OSError as error:
        return _Seen(blind=f"the file cannot be opened: {error.strerror}")


def _count(descriptor: int, offset: int, length: int, mount: Mount) -> _Seen:
    """Pages of a file of which the kernel tells."""
    pages = pages_between(offset, length)
    reason = "overlay: this kernel does not tell which pages of its layers are in memory" if mount.is_overlay else None
    for name, look in find_lookers().named(only_mapped=mount.is_overlay):
        try:
            found = min(look(descriptor, offset, length), pages)
        except OSError as error:
            reason = f"the kernel does not tell which pages of a file are in memory: {error.strerror}"
            continue
        if mount.never_cold is not None and found < WARM * pages:
            return _Seen(file_system=mount.type, blind=mount.never_cold)
        return _Seen(pages=pages, resident=found, means=name, file_system=mount.type)
    return _Seen(file_system=mount.type, blind=reason or "the kernel does not tell which pages of a file are in memory")


def _forget(asked: FileRange) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    with contextlib.suppress(OSError), _opened(asked.path) as (descriptor, about):  # the verification finds out
        offset, length = _within(asked, about.st_size)
        if not length:
            return
        os.fdatasync(descriptor)
        for unit in (PAGE, _FOLIO):
            # Only whole pages are dropped; the end of the file counts as the end of a page.
            first, end = offset // unit * unit, -(-(offset + length) // unit) * unit
            os.posix_fadvise(descriptor, first, end - first, os.POSIX_FADV_DONTNEED)
            if not _is_left(descriptor, offset, length):
                return


def _is_left(descriptor: int, offset: int, length: int) -> bool:
    """True if some of it is still in memory, as far as the kernel tells."""
    lookers = find_lookers()
    for look in (lookers.mapped_pages, lookers.own_pages):  # the first is right for overlays, too
        with contextlib.suppress(OSError):
            if look is not None:
                return look(descriptor, offset, length) > 0
    return True


def _read(asked: FileRange, buffer: memoryview) -> None:
    with contextlib.suppress(OSError), _opened(asked.path) as (descriptor, about):
        offset, length = _within(asked, about.st_size)
        end = offset + length
        while offset < end:
            done = os.preadv(descriptor, [buffer[: end - offset]], offset)
            if not done:  # it has been cut meanwhile
                return
            offset += done


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[int, os.stat_result]]:
    """Opens a regular file for reading; anything else could block, or do something.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    if not stat.S_ISREG(pathlib.Path(path).stat().st_mode):
        raise OSError(0, "it is no regular file")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:  # not our file: its time of last access changes as by any reader
        descriptor = os.open(path, flags)
    try:
        yield descriptor, os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _within(asked: FileRange, size: int) -> tuple[int, int]:
    """Offset and length of what lies within the file."""
    offset = min(asked.offset, size)
    return offset, size - offset if asked.length is None else min(asked.length, size - offset)


def _spread(ranges: Sequence[FileRange]) -> list[FileRange]:
    """All of them, or evenly spread ones."""
    if len(ranges) <= MOST_RANGES:
        return list(ranges)
    return [ranges[place * len(ranges) // MOST_RANGES] for place in range(MOST_RANGES)]
