"""Spies see, while one sample is prepared, which files are opened and which images decoded; they change neither.

Installed once in the child, before the TARGET is loaded, so that `from PIL.Image import open` is seen as well.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import stat
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace.doctor.bench import Bench
from headrace.doctor.evidence import DecodedImage, OpenedFile
from headrace.doctor.stacks import is_user_code

__all__ = ["describe_files", "enter_transforms", "install"]

HEAD_BYTES = 64
"""Enough for every magic number, and for the first line of a pointer file."""
_CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll", ".dylib", ".pth", ".egg-info")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/")


def install(bench: Bench) -> None:
    """Sets the spies for the life of this interpreter."""
    _spy_on_open(bench)
    if importlib.util.find_spec("PIL") is not None:
        _spy_on_pillow(bench)


def _spy_on_open(bench: Bench) -> None:
    """Listens to Python's own audit event of opening a file. Libraries that open files in C are not heard."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not bench.is_listening:
            return
        path, mode, flags = (*arguments, None, None, None)[:3]
        writes = (isinstance(mode, str) and any(letter in mode for letter in "wax")) or (
            isinstance(flags, int) and flags & (os.O_WRONLY | os.O_CREAT)
        )
        if writes or not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - at once: the current folder may change
        if not name.endswith(_CODE) and not name.startswith(_SYSTEM) and is_user_code(name):
            bench.note_opened(name)

    sys.addaudithook(hook)


def describe_files(paths: Iterable[str]) -> tuple[OpenedFile, ...]:
    """Returns size and first bytes of files that were opened. Pipes and the like are left alone: reading takes from them."""
    found = []
    for path in paths:
        try:
            status = pathlib.Path(path).stat()
            if not stat.S_ISREG(status.st_mode):
                continue
            with pathlib.Path(path).open("rb", buffering=0) as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            found.append(OpenedFile(path=path, size_bytes=None, head=b""))
        else:
            found.append(OpenedFile(path=path, size_bytes=status.st_size, head=head))
    return tuple(found)


def _spy_on_pillow(bench: Bench) -> None:
    """Wraps what decodes in Pillow: opening (header), loading (pixels) and converting."""
    from PIL import Image, ImageFile

    original_open = Image.open

    @functools.wraps(original_open)
    def open_image(*arguments: Any, **options: Any) -> Any:
        with bench.inside("decode"):
            image = original_open(*arguments, **options)
        if bench.is_listening:
            bench.note_image(_describe_image(image, arguments[0] if arguments else options.get("fp")))
        return image

    Image.open = open_image
    for owner, name in ((ImageFile.ImageFile, "load"), (Image.Image, "convert")):
        setattr(owner, name, _as_decode(bench, getattr(owner, name)))


def _as_decode(bench: Bench, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        with bench.inside("decode"):
            return method(*arguments, **options)

    return wrapped


def _describe_image(image: Any, source: Any) -> DecodedImage:
    name: Any = source if isinstance(source, (str, bytes, os.PathLike)) else getattr(source, "name", None)
    is_path = isinstance(name, (str, bytes, os.PathLike))
    return DecodedImage(
        path=os.path.abspath(os.fsdecode(name)) if is_path else None,  # noqa: PTH100 - as above
        format=image.format,
        mode=image.mode,
        size=(int(image.size[0]), int(image.size[1])),
    )


def enter_transforms(bench: Bench, slots: Iterable[tuple[Any, str, Callable[..., Any]]]) -> None:
    """Lets the bench know when a data set enters a transform that it keeps in an attribute."""
    for holder, name, function in slots:
        try:
            setattr(holder, name, _Entered(bench, function))
        except Exception:  # noqa: S112 - a data set that guards its attributes is examined without this stage
            continue


class _Entered:
    """Stands for a transform, and is it in every other respect: attributes and class are the transform's own."""

    stands_for = "_entered"
    """Where the transform itself is, for those who walk through objects."""

    def __init__(self, bench: Bench, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_entered", (bench, function))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        bench, function = object.__getattribute__(self, "_entered")
        with bench.inside("transform"):
            return function(*arguments, **options)

    @property  # type: ignore[misc] # so that isinstance sees the transform
    def __class__(self) -> type:
        return type(object.__getattribute__(self, "_entered")[1])

    def __reduce_ex__(self, protocol: Any) -> Any:  # a copy, or a worker started by spawn, gets the transform alone
        return _itself, (object.__getattribute__(self, "_entered")[1],)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_entered")[1], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_entered")[1], name, value)


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
