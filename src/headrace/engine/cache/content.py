"""What a record holds now, as 16 bytes: the part of a key by which changed content is never taken for old.

A file is known by its path, size, times and inode, without being read; any other record is read and digested, which
saves the stages and not the reading.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.engine.cache.packing import pack
from headrace.engine.source.folder import FolderSource
from headrace.protocols import Source

__all__ = ["FileStamps", "file_stamp", "file_stamps", "record_stamp"]

SETTLED_NS = 50_000_000
"""A file changed within the last 50 ms may change again without a new time: kernels count file times in ticks of up to
10 ms. Such a file is loaded and not kept. git refuses to trust an index in the same way (its "racy git" problem)."""


def file_stamp(source: Source, index: int) -> tuple[bytes, bool] | None:
    """Returns the stamp of the file of a row and whether it has settled; None if the record is not one file.

    Label and class name are part of the record without being in the file, so they are part of the stamp.

    A file that cannot be found has a stamp of its own: reading it says best what is wrong.
    """
    if not isinstance(source, FolderSource):
        return None
    path = source.locate(index)
    try:
        state = os.stat(path)  # noqa: PTH116 - ten thousand times a second
    except OSError:
        return bytes(16), False
    label = int(source.manifest.column("label")[index])
    name = None if source.classes is None else source.classes[label]
    changed_ns = max(state.st_mtime_ns, state.st_ctime_ns)
    text = (
        f"{path}\0{name}\0{label} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino} {state.st_dev}"
    )
    stamp = xxhash.xxh3_128_digest(text.encode(errors="surrogatepass"), 1)
    return stamp, time.time_ns() - changed_ns > SETTLED_NS


class FileStamps:
    """Stamps of many files at once: one `stat` per file, and no digest while its state is what it was.

    Remembers per row, in this process, the state that a stamp was made of; 56 bytes for each row that was met.
    """

    def __init__(self, source: FolderSource) -> None:
        self._source = source
        self._root = os.fsencode(f"{source.root}/")
        self._states = np.zeros((len(source), 5), np.int64)
        self._stamps = np.zeros((len(source), 16), np.uint8)

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Returns the stamps of some rows, each in [0, N), as (B, 16): what `file_stamp` returns for each.

        Raises:
            OSError: a file cannot be found.
            OverflowError: a file system counts beyond 63 bits.
        """
        stats = [os.stat(self._root + path) for path in self._source.manifest.encoded(rows)]  # noqa: PTH116 - as above
        seen = np.array([(s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev) for s in stats], np.int64)
        is_new = (seen != self._states[rows]).any(axis=1)
        for row, state in zip(rows[is_new].tolist(), seen[is_new], strict=True):
            stamp, is_settled = file_stamp(self._source, row) or (bytes(16), False)
            self._stamps[row] = np.frombuffer(stamp, np.uint8)
            # A file that may still change unseen is asked again; so is one that changed since it was looked at above.
            self._states[row] = state if is_settled else 0
        return self._stamps[rows]


def file_stamps(source: Source) -> FileStamps | None:
    """Returns what stamps many rows at once; None if the records are not single files, or their paths no UTF-8."""
    if isinstance(source, FolderSource) and sys.getfilesystemencoding().lower() == "utf-8":
        return FileStamps(source)
    return None


def record_stamp(record: Any) -> bytes:
    """Returns the digest (XXH3-128) of a record of fixed form.

    Raises:
        Unpackable: it holds something whose bytes are not known.
    """
    packed = pack(record)
    block = np.zeros(packed.num_bytes, np.uint8)
    packed.write(block)
    digest = xxhash.xxh3_128(packed.layout)
    digest.update(block.data)
    return digest.digest()
