"""OpenCV: reading and decoding images, which answers None instead of raising, and what changes them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from headrace.doctor.evidence import DecodedImage
from headrace.doctor.evidence.decoding import ImageStep
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.sightings import Picture
from headrace.doctor.lab.spies.calls import argument, replace, spied_reader

__all__ = ["SPIES", "note_array_image"]

_UNCHANGED, _IGNORES_ORIENTATION, _COLOR = -1, 128, 1
_INTERPOLATIONS = {0: "INTER_NEAREST", 1: "INTER_LINEAR", 2: "INTER_CUBIC", 3: "INTER_AREA", 4: "INTER_LANCZOS4"}
_CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}


def _spy_on_opencv(bench: Bench, module: ModuleType) -> None:
    for name, keyword in (("imread", "filename"), ("imdecode", "buf")):
        note = functools.partial(_note_read, bench, function=name)
        wrap = functools.partial(spied_reader, bench, keyword=keyword, note=note, is_open=name == "imread")
        replace(module, name, wrap)
    for name, place, keyword in (
        ("resize", 5, "interpolation"),
        ("warpAffine", 4, "flags"),
        ("warpPerspective", 4, "flags"),
        ("remap", 3, "interpolation"),
    ):
        replace(module, name, functools.partial(_warping, bench, name=name, place=place, keyword=keyword))
    for name in ("cvtColor", "rotate", "transpose", "flip"):
        replace(module, name, functools.partial(_deriving, bench, name=name))


SPIES: Mapping[str, Callable[[Bench, ModuleType], None]] = {"cv2": _spy_on_opencv}


def _note_read(
    bench: Bench, image: Any, path: str | None, arguments: tuple[Any, ...], options: dict[str, Any], *, function: str
) -> None:
    if image is None:
        bench.seen.note_refusal(path, None, f"cv2.{function} returned None")
        return
    flags = argument(arguments, options, 1, "flags", _COLOR)
    encoded = argument(arguments, options, 0, "buf")
    source = path if function == "imread" else np.asarray(encoded, dtype=np.uint8).tobytes()
    picture = note_array_image(bench, image, reader="OpenCV", path=path, source=source)
    if flags != _UNCHANGED and not flags & _IGNORES_ORIENTATION:
        size = _size(image)
        picture.steps.append(ImageStep(name="exif_transpose", detail=f"cv2.{function}", before=size, after=size))


def note_array_image(bench: Bench, image: Any, *, reader: str, path: str | None, source: Any) -> Picture:
    """Notes an image that came out of a decoder as an array."""
    bench.seen.note_read(path)
    size = _size(image)
    channels = 1 if image.ndim == 2 else int(image.shape[-1])
    mode = "I;16" if channels == 1 and image.dtype == np.uint16 else _CHANNELS.get(channels, f"{channels} channels")
    bench.note_image(DecodedImage(path=path, format=None, mode=mode, size=size))
    picture = Picture(reader=reader, source=source, path=path)
    picture.steps.append(ImageStep(name="load", before=size, after=size))
    bench.seen.add(picture, image)
    return picture


def _size(image: Any) -> tuple[int, int]:
    return (int(image.shape[1]), int(image.shape[0])) if getattr(image, "ndim", 0) >= 2 else (0, 0)


def _warping(bench: Bench, original: Callable[..., Any], name: str, place: int, keyword: str) -> Callable[..., Any]:
    """Around what interpolates: linear if nothing is said."""

    @functools.wraps(original)
    def warp(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        made = original(*arguments, **options)
        wall_s = time.perf_counter() - started
        if bench.is_listening and arguments:
            before, after = _size(arguments[0]), _size(made)
            chosen = int(argument(arguments, options, place, keyword, 1)) & 7
            detail = _INTERPOLATIONS.get(chosen, str(chosen))
            smooths = chosen in {1, 2, 3, 4} and (name != "resize" or before != after)
            step = ImageStep(name=name, detail=detail, before=before, after=after, smooths=smooths, wall_s=wall_s)
            bench.seen.note_step(arguments[0], step)
            bench.seen.derive(arguments[0], made)
        return made

    return warp


def _deriving(bench: Bench, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def derived(*arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        if bench.is_listening and arguments:
            step = ImageStep(name=name, before=_size(arguments[0]), after=_size(made))
            bench.seen.note_step(arguments[0], step)
            bench.seen.derive(arguments[0], made)
        return made

    return derived
