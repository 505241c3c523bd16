"""Rows and columns of a JPEG without the rest of it, by a small native library; None where it is not there.

Pillow decodes whole pictures only, and so do simplejpeg and PyTurboJPEG. libjpeg-turbo can skip rows and columns;
`image_region.c` is the way to it. Built by `python -m headrace.engine.transform.image_region`, which needs a C compiler and
libjpeg-turbo's headers. What it gives are Pillow's own pixels (a test compares), so nothing depends on its being there
but the time.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["build", "decode_region", "is_there"]

_LIBRARY = Path(__file__).with_name("_image_region.so")


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


def build(target: Path = _LIBRARY) -> Path:
    """Compiles the library; CalledProcessError or FileNotFoundError if there is no compiler or no libjpeg-turbo."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    source = Path(__file__).with_name("image_region.c")
    command = [compiler, "-O2", "-shared", "-fPIC", "-Wall", "-o", str(target), str(source), "-ljpeg"]
    subprocess.run(command, check=True)
    return target


@functools.cache
def _function() -> Any:
    try:
        function = ctypes.CDLL(str(_LIBRARY)).headrace_decode_region
    except (OSError, AttributeError):  # not built, or another libjpeg than it was built for
        return None
    numbers, address = ctypes.c_int, ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, numbers, numbers, numbers, ctypes.POINTER(numbers), address]
    function.restype = numbers
    return function


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
