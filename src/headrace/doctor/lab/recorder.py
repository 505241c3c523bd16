"""The flight recorder: what a child was about to do, in memory that outlives it.

The child writes the sample's identity before it prepares the sample. The block is shared memory without a name, so a
segmentation fault, `os._exit`, SIGKILL or a hang leaves the last entry readable, and nothing is left on disk.

    offset 0     how often something was taken in hand (u64)
    offset 8     how often that was a row of the data set (u64)
    offset 16    1 while something is in hand (u64)
    offset 24    row number (i64; -1 = no row, e.g. while a batch is joined)
    offset 64    stage, path, sample id: texts in slots of fixed size
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import struct
import tempfile
from typing import IO

from headrace.errors import SampleId

__all__ = ["FlightRecorder", "Mark"]

_HEADER = struct.Struct("<QQQq")
_SLOTS = {"stage": (64, 192), "path": (256, 4096), "sample_id": (4352, 8192)}
"""Offset and size in bytes of each text; 4096 is the longest path that Linux opens."""
_SIZE = 16384


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What was in hand."""

    index: int | None
    """Row number; None: no single row, e.g. while a batch is joined."""
    sample_id: SampleId | None
    stage: str
    path: str | None
    """What the sample is read from, as far as it had come."""


class FlightRecorder:
    """One writer (the child), one reader (the parent). Cost of an entry: a few microseconds."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)
        self._file: IO[bytes] | None = None

    @classmethod
    def create(cls) -> FlightRecorder:
        """Returns an empty recorder over a file that has no name; the child maps the same descriptor."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the recorder
        os.ftruncate(file.fileno(), _SIZE)
        recorder = cls(file.fileno())
        recorder._file = file
        return recorder

    def close(self) -> None:
        """Gives the memory back."""
        self._memory.close()
        if self._file is not None:
            self._file.close()

    # The child writes.

    def begin(self, index: int | None, sample_id: SampleId | None, path: str | None, stage: str) -> None:
        """Notes what is in hand from now on."""
        self._put("sample_id", json.dumps(sample_id))
        self._put("path", path or "")
        self._put("stage", stage)
        # The header comes last: whoever sees the new count finds the texts that belong to it.
        num_rows = self.num_rows + (index is not None)
        _HEADER.pack_into(self._memory, 0, self.num_begun + 1, num_rows, 1, -1 if index is None else index)

    def end(self) -> None:
        """Notes that nothing is in hand: no deadline runs."""
        struct.pack_into("<Q", self._memory, 16, 0)

    def note_stage(self, stage: str) -> None:
        """Notes how far the sample in hand has come."""
        self._put("stage", stage)

    def note_path(self, path: str) -> None:
        """Notes what the sample in hand is read from."""
        self._put("path", path)

    # The parent reads.

    @property
    def num_begun(self) -> int:
        """How often something was taken in hand: progress is a change of this number."""
        count: int = _HEADER.unpack_from(self._memory, 0)[0]
        return count

    @property
    def num_rows(self) -> int:
        """How often that was a row of the data set."""
        count: int = _HEADER.unpack_from(self._memory, 0)[1]
        return count

    @property
    def is_busy(self) -> bool:
        """True while something is in hand."""
        return bool(_HEADER.unpack_from(self._memory, 0)[2])

    def read(self) -> Mark | None:
        """Returns what is in hand; None if nothing is."""
        _, _, is_busy, index = _HEADER.unpack_from(self._memory, 0)
        if not is_busy:
            return None
        text = self._get("sample_id")
        try:
            sample_id = json.loads(text)
        except json.JSONDecodeError:  # an identity longer than its slot: its beginning still names it
            sample_id = text.removeprefix('"')
        return Mark(
            index=None if index < 0 else index,
            sample_id=sample_id,
            stage=self._get("stage"),
            path=self._get("path") or None,
        )

    def _put(self, slot: str, text: str) -> None:
        offset, size = _SLOTS[slot]
        data = text.encode("utf-8", "surrogateescape")[: size - 4]
        self._memory[offset : offset + 4 + len(data)] = len(data).to_bytes(4, "little") + data

    def _get(self, slot: str) -> str:
        offset, size = _SLOTS[slot]
        length = min(int.from_bytes(self._memory[offset : offset + 4], "little"), size - 4)
        # A write cut short by the child's end may leave half a character.
        return self._memory[offset + 4 : offset + 4 + length].decode("utf-8", "replace")
