"""The few functions that exist in C as well: where their libraries are, how one is built, how it is found.

    python -m headrace.native        builds both, as an installation does where there is a C compiler

Nothing depends on a library but the time: each has a twin in Python that defines its results, and steps in without a
word where the library is missing. A library is plain machine code for `ctypes`. It knows nothing of Python, so one build
serves every version of it. Imports the standard library alone, because the build of the package runs this file by itself.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path
from typing import Final, TypeVar

__all__ = ["SOURCES", "build", "build_all", "compiler", "library_path", "load"]

LibraryT = TypeVar("LibraryT", bound=ctypes.CDLL)

PACKAGE: Final = Path(__file__).parent

folder = PACKAGE
"""Where libraries lie, each at the place that its C file has in the package. Tests and the build set it to another."""

SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "engine/order/kernels.c": ("-O3",),  # -O2 makes no vector instructions of its loops before gcc 12, and few since
    "engine/transform/image_region.c": ("-O2", "-ljpeg"),  # libjpeg-turbo does the work
}
"""Each C file of the package and what its compilation needs."""


def library_path(source: str) -> Path:
    """Returns where the library of a C file is, or would be.

    The name holds a checksum of the C file, so that a library of another version of it is never loaded.
    """
    path = Path(source)
    checksum = zlib.crc32((PACKAGE / path).read_bytes())
    return folder / path.with_name(f"_{path.stem}-{checksum:08x}.so")


def compiler() -> list[str]:
    """Returns the command of the C compiler, with options: `CC` of the environment, or what built this Python, or `cc`."""
    if given := os.environ.get("CC"):
        return given.split()
    # A Python that came ready-made names a compiler that may not be here.
    built_with = (sysconfig.get_config_var("CC") or "cc").split()
    return built_with if shutil.which(built_with[0]) else ["cc"]


def build(source: str) -> Path:
    """Compiles one C file of `SOURCES`, and removes libraries of its earlier versions.

    Raises:
        FileNotFoundError: There is no compiler.
        CalledProcessError: It failed, for example because the headers of libjpeg-turbo are missing.
    """
    target = library_path(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside the target and renamed, so that nobody loads half a library.
    fresh = target.with_suffix(f".{os.getpid()}")
    command = [*compiler(), "-shared", "-fPIC", "-o", str(fresh), str(PACKAGE / source), *SOURCES[source]]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    for other in target.parent.glob(f"_{Path(source).stem}-*.so"):
        if other != target:
            other.unlink(missing_ok=True)
    return target


def build_all() -> tuple[list[Path], list[str]]:
    """Compiles what can be compiled here; returns the libraries, and one line for each that could not be."""
    built, failed = [], []
    for source in SOURCES:
        try:
            built.append(build(source))
        except (OSError, subprocess.CalledProcessError) as error:
            said = (getattr(error, "stderr", None) or "").strip().partition("\n")[0]
            failed.append(f"{source}: {said or error}")
    return built, failed


def load(source: str, kind: type[LibraryT]) -> LibraryT | None:
    """Returns the library of a C file; None if it is not there, or cannot be loaded here.

    Args:
        source: A key of `SOURCES`.
        kind: `ctypes.CDLL` lets other threads run Python during a call, `ctypes.PyDLL` does not.
    """
    try:
        return kind(str(library_path(source)))
    except OSError:  # no library; no C file; or one for another machine, or for a libjpeg that is not here
        return None


if __name__ == "__main__":
    libraries, failures = build_all()
    sys.stdout.writelines(f"built {library}\n" for library in libraries)
    sys.stdout.writelines(f"not built: {failure}\n" for failure in failures)
    sys.exit(bool(failures))
