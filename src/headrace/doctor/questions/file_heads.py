"""What the first bytes of a file say: which format it really holds, and whether it only points to its content."""

from __future__ import annotations

import dataclasses
import pathlib

from headrace.doctor.evidence import OpenedFile, SampleRead
from headrace.loop.versions import lfs_pointers

__all__ = ["Pointer", "content_of", "is_another_format", "pointer_in"]

FORMATS: tuple[tuple[bytes, str, tuple[str, ...]], ...] = (
    (b"\xff\xd8\xff", "a JPEG image", (".jpg", ".jpeg")),
    (b"\x89PNG", "a PNG image", (".png",)),
    (b"II*\0", "a TIFF image", (".tif", ".tiff")),
    (b"MM\0*", "a TIFF image", (".tif", ".tiff")),
    (b"GIF8", "a GIF image", (".gif",)),
    (b"BM", "a BMP image", (".bmp",)),
    (b"RIFF", "RIFF data", (".webp", ".wav", ".avi")),
    (b"\x93NUMPY", "a NumPy array", (".npy",)),
    (b"PK", "a zip archive", (".zip", ".npz")),
    (b"\x1f\x8b", "gzip data", (".gz", ".tgz")),
    (b"\x89HDF", "an HDF5 file", (".h5", ".hdf5")),
    (b"PAR1", "a Parquet file", (".parquet",)),
    (b"%PDF", "a PDF document", (".pdf",)),
    (b"<!doctype", "an HTML page", (".html", ".htm")),
    (b"<html", "an HTML page", (".html", ".htm")),
    (b"<?xml", "an XML document", (".xml", ".svg")),
)
"""(first bytes, what it is, extensions that promise it). Source: the formats' own specifications."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pointer:
    """A small text that a tool left in the place of a large file."""

    path: str
    tool: str
    command: str
    """What fetches the content."""


def content_of(head: bytes) -> str | None:
    """Returns what the bytes begin, e.g. `a JPEG image`; None if it is no format known here."""
    # Markup is written in either case; the magic numbers of binary formats hold no lower-case letters that matter.
    markup = head.lstrip().lower()
    for magic, name, _ in FORMATS:
        if head.startswith(magic) or (magic.startswith(b"<") and markup.startswith(magic)):
            return name
    return None


def is_another_format(file: OpenedFile) -> bool:
    """True if the extension promises a format that does not begin like this."""
    extension = pathlib.PurePath(file.path).suffix.lower()
    promised = [name for _, name, extensions in FORMATS if extension in extensions]
    return bool(promised) and content_of(file.head) not in promised


def pointer_in(read: SampleRead) -> Pointer | None:
    """Returns the first pointer file that was opened in place of data; None if there is none.

    Sources: DVC, ".dvc files"; git-annex, "pointer files".
    """
    for file in read.files:
        if file.size_bytes is not None and file.size_bytes >= lfs_pointers.LIMIT_BYTES:
            continue
        if file.head.startswith(lfs_pointers.STARTS):
            return Pointer(file.path, "git-lfs", "git lfs pull")
        if file.head.startswith(b"/annex/objects/"):
            return Pointer(file.path, "git-annex", "git annex get .")
        is_dvc = file.head.lstrip().startswith((b"outs:", b"md5:")) and b"md5:" in file.head
        # A .dvc file that is read on purpose, say to log the version of the data, does not fail its sample.
        if is_dvc and not (file.path.endswith(".dvc") and read.outcome == "ok"):
            return Pointer(file.path, "DVC", "dvc pull")
    return None
