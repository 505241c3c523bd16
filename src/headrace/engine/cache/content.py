"""What a record holds now, as 16 bytes: the part of a key by which changed content is never taken for old.

A file is known by its path, size, times and inode, without being read; any other record is read and digested, which
saves the stages and not the reading.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import xxhash

from headrace.engine.cache.packing import pack
from headrace.engine.source.folder import FolderSource
from headrace.protocols import Source

__all__ = ["file_stamp", "record_stamp"]

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
