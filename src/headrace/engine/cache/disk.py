"""DiskStore: one file per kept sample, shared by processes and by runs.

    <folder>/usage                       bytes in all, for `max_bytes`
    <folder>/<stages>/<2 digits>/<key>   one entry; the key says sample and content

A file appears under its name only when it is whole. A changed stage has another folder, changed content another name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headrace.engine.cache.entry import MISS, decode
from headrace.engine.cache.lock import locked
from headrace.errors import ConfigurationError, SampleId, Where

__all__ = ["DiskStore", "default_folder"]


def default_folder() -> Path:
    """Returns the user's own folder for caches: `$XDG_CACHE_HOME/headrace/samples`, else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace" / "samples"


class DiskStore:
    """Entries of up to `max_bytes` in all below one folder, whatever plans they belong to; nothing is evicted.

    Args:
        folder: Made if it is not there. Deleting it, or any file in it, is safe at any time.
        stages: Digest of what the stages do; names the folder of these entries.
        max_bytes: Bound for the whole folder.

    Raises:
        ConfigurationError: the folder cannot be made or written to.
    """

    def __init__(self, folder: Path, stages: str, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder.absolute(), max_bytes
        self._stages = self.folder / stages
        self._is_writable = True
        try:
            self._stages.mkdir(parents=True, exist_ok=True)
            with self._usage():
                ...
        except OSError as error:
            raise ConfigurationError(
                f"the cache folder cannot be used: {error}",
                where=Where(path=str(folder)),
                do='where="memory"    or another folder',
            ) from error

    def get(self, row: int, sample_id: SampleId, stamp: bytes) -> Any:  # noqa: ARG002 - a store's signature
        """Returns the sample; MISS if it is not kept with that stamp, or its file is damaged or cannot be read."""
        try:
            data = np.fromfile(self._path(sample_id, stamp), np.uint8)
        except OSError:
            return MISS
        return decode(data, stamp)

    def put(self, row: int, sample_id: SampleId, entry: Any) -> bool:  # noqa: ARG002 - a store's signature
        """Keeps an entry; False if there is no room. A disk that is full or fails ends keeping, with one warning."""
        if not self._is_writable:
            return False
        stamp = entry[16:32].tobytes()
        try:
            with self._usage() as usage:
                if usage[0] + entry.nbytes > self.max_bytes:
                    return False
                usage[0] += entry.nbytes
            self._write(self._path(sample_id, stamp), entry)
        except OSError as error:
            self._is_writable = False
            with contextlib.suppress(OSError), self._usage() as usage:
                usage[0] -= entry.nbytes
            warnings.warn(
                f"the cache in {self.folder} keeps no further samples in this process: {error}. Loading goes on.",
                UserWarning,
                stacklevel=2,
            )
            return False
        return True

    def usage(self) -> tuple[int, int]:
        """Returns how many samples of these stages are kept (counts files), and the bytes of the whole folder."""
        with self._usage() as usage:
            return sum(len(files) for _, _, files in os.walk(self._stages)), usage[0]

    def describe(self) -> str:
        """Returns where the entries lie."""
        return str(self.folder)

    def _path(self, sample_id: SampleId, stamp: bytes) -> Path:
        digest = hashlib.blake2b(stamp + repr(sample_id).encode(errors="surrogatepass"), digest_size=16).hexdigest()
        return self._stages / digest[:2] / digest

    def _write(self, path: Path, entry: Any) -> None:
        """Makes the file under its name, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _link_nameless(path, entry):
            temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
            try:
                with temporary.open("wb", buffering=0) as file:
                    _write_all(file, entry)
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise

    @contextlib.contextmanager
    def _usage(self) -> Iterator[list[int]]:
        """Lends the number of bytes in the folder, alone; what the block leaves there is written back."""
        fd = os.open(self.folder / "usage", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            with locked(fd):
                text = os.pread(fd, 32, 0).strip()
                before = int(text) if text.isdigit() else _counted(self.folder)
                usage = [before]
                yield usage
                if usage[0] != before or not text:
                    os.pwrite(fd, b"%031d\n" % max(usage[0], 0), 0)
        finally:
            os.close(fd)


def _link_nameless(path: Path, entry: Any) -> bool:
    """Writes a file without a name and then gives it one: a process killed meanwhile leaves nothing behind.

    False where the system cannot: neither O_TMPFILE nor /proc, or a file system without them.
    """
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return False
    try:
        fd = os.open(path.parent, flag | os.O_WRONLY, 0o666)
    except OSError:
        return False
    with io.FileIO(fd, "w") as file:
        _write_all(file, entry)
        for _ in range(2):
            try:
                # Any directory descriptor makes this linkat, the only call that follows the link in /proc.
                os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
            except FileExistsError:
                path.unlink(missing_ok=True)  # damaged, or another worker's equal copy
            except FileNotFoundError:
                return False  # no /proc
            else:
                return True
    return True  # others keep the same sample at this moment: theirs will do


def _write_all(file: io.FileIO, entry: Any) -> None:
    rest = memoryview(entry)
    while rest:  # a disk that is nearly full takes a part first, and fails at the next
        rest = rest[file.write(rest) or 0 :]


def _counted(folder: Path) -> int:
    """Bytes of all files below a folder; those that vanish meanwhile do not count."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total
