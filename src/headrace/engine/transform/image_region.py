"""Rows and columns of a JPEG without the rest of it, by a small native library; None where it is not there.

Pillow decodes whole pictures only, and so do simplejpeg and PyTurboJPEG. libjpeg-turbo can skip rows and columns;
`image_region.c` is the way to it. Its library is built with the package where a C compiler and libjpeg-turbo's headers
are there (`headrace.native`). What it gives are Pillow's own pixels (a test compares), so nothing depends on its being
there but the time.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headrace import native

__all__ = ["SOURCE", "decode_region", "is_there"]

SOURCE: Final = "engine/transform/image_region.c"


def is_there() -> bool:
    """Returns True if regions can be decoded here."""
    return _function() is not None


def decode_region(
    data: bytes, step: int, size: tuple[int, int], region: tuple[int, int, int, int]
) -> npt.NDArray[np.uint8] | None:
    """Returns (H, W, 3) uint8 pixels of one region; None if they have to be decoded in another way.

    Args:
        data: A JPEG file.
        step: How many times smaller it is decoded: 1, 2, 4 or 8.
        size: (width, height) of the whole picture when decoded so.
        region: (left, top, right, bottom) in that picture.

    A file that does not end as a JPEG is left to the other way too, which refuses it even if what is cut off lies
    below the region.

    Threads: runs without the interpreter lock.
    """
    function = _function()
    if function is None or not data.endswith(b"\xff\xd9"):
        return None
    left, top, right, bottom = region
    pixels = np.empty((bottom - top, right - left, 3), np.uint8)
    is_done = function(data, len(data), step, *size, (ctypes.c_int * 4)(*region), pixels.ctypes.data)
    return pixels if is_done else None


@functools.cache
def _function() -> Any:
    library = native.load(SOURCE, ctypes.CDLL)
    if library is None:
        return None
    function = library.headrace_decode_region
    numbers, address = ctypes.c_int, ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, numbers, numbers, numbers, ctypes.POINTER(numbers), address]
    function.restype = numbers
    return function
