"""Looks at image and array files as they are stored, apart from the user's code and after it has done its work."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RawFile", "is_cut_off", "open_raw"]

MAX_PIXELS = 30_000_000
"""Larger pictures are described by their header alone: decoding takes a second or more."""
_ORIENTATION = 0x0112
_SINGLE = ("1", "L", "P", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
_TAIL_BYTES = 64
_ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RawFile:
    """One file as it is stored."""

    format: str | None
    mode: str
    size: tuple[int, int]
    """(width, height)."""
    orientation: int
    array: Array | None
    """[H, W] or [H, W, C] without any conversion; None: too large, or colour that lies upright and needs no look."""
    palette: Array | None = None
    """[256, 3], for mode P."""


def open_raw(source: Any) -> RawFile | None:
    """Returns what a path or encoded bytes hold; None if it is no image or array that can be opened here."""
    if isinstance(source, str) and source.endswith(".npy"):
        return _open_array(source)
    if importlib.util.find_spec("PIL") is None:
        return None
    try:
        return _open_image(source)
    except Exception:  # what it refuses the user's decoder has refused as well, or it is none of ours
        return None


def _open_array(path: str) -> RawFile | None:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return None
    if array.ndim != 2 or array.size > MAX_PIXELS:
        return None
    size = (int(array.shape[1]), int(array.shape[0]))
    return RawFile(format="NPY", mode=str(array.dtype), size=size, orientation=1, array=np.asarray(array))


def _open_image(source: Any) -> RawFile:
    from PIL import Image

    with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
        orientation = _orientation(image)
        is_of_interest = image.mode in _SINGLE or orientation != 1
        is_decoded = is_of_interest and image.size[0] * image.size[1] <= MAX_PIXELS
        colours = image.getpalette("RGB") if image.mode == "P" else None
        return RawFile(
            format=image.format,
            mode=image.mode,
            size=(int(image.size[0]), int(image.size[1])),
            orientation=orientation,
            array=np.asarray(image) if is_decoded else None,
            palette=None if not colours else np.array(colours, dtype=np.uint8).reshape(-1, 3),
        )


def _orientation(image: Any) -> int:
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # broken EXIF data says nothing
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def is_cut_off(source: Any) -> bool:
    """Returns True if an image file ends before its image does, whether or not truncated loading is on."""
    from PIL import Image, ImageFile

    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            end = _ENDS.get(image.format or "")
            if end is not None and end in _tail(source):
                return False
            tolerant, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
            try:
                image.load()
            finally:
                ImageFile.LOAD_TRUNCATED_IMAGES = tolerant
    except (OSError, SyntaxError):
        return True
    return False


def _tail(source: Any) -> bytes:
    if isinstance(source, bytes):
        return source[-_TAIL_BYTES:]
    with pathlib.Path(source).open("rb") as file:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        return file.read()
