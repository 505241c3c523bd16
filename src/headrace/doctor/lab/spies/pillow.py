"""Pillow: opening, loading and converting images, and what changes their geometry or mixes their values."""

from __future__ import annotations

import functools
import io
import sys
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from headrace.doctor.evidence import DecodedImage
from headrace.doctor.evidence.decoding import ImageStep
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.sightings import Picture
from headrace.doctor.lab.spies.calls import argument, replace, text_path, undisturbed
from headrace.doctor.stacks import is_user_code

__all__ = ["SPIES"]

_FILTERS = {0: "NEAREST", 1: "LANCZOS", 2: "BILINEAR", 3: "BICUBIC", 4: "BOX", 5: "HAMMING", 6: "MKS2013", 7: "MKS2021"}
_DERIVING = ("copy", "crop", "filter", "point", "quantize", "reduce")
"""Methods that give a new image of the same picture; of those below the step is kept as well."""


def _spy_on_images(bench: Bench, module: ModuleType) -> None:
    image_class: Any = module.Image
    replace(module, "open", lambda original: _opening(bench, original))
    replace(module, "fromarray", lambda original: _deriving(bench, original, "fromarray", place=0))
    replace(image_class, "convert", lambda original: _converting(bench, original))
    replace(image_class, "resize", lambda original: _resizing(bench, original))
    replace(image_class, "getexif", lambda original: _asking(bench, original))
    for name in (*_DERIVING, "rotate", "transform", "transpose"):
        replace(image_class, name, functools.partial(_deriving, bench, name=name))


def _spy_on_files(bench: Bench, module: ModuleType) -> None:
    replace(module.ImageFile, "load", lambda original: _loading(bench, original, module))


def _spy_on_tiff(bench: Bench, module: ModuleType) -> None:
    """Compressed TIFF files do not pass the door of the others."""
    replace(module.TiffImageFile, "load", lambda original: _loading(bench, original, module.ImageFile))


def _spy_on_operations(bench: Bench, module: ModuleType) -> None:
    replace(module, "exif_transpose", lambda original: _deriving(bench, original, "exif_transpose"))


SPIES: Mapping[str, Callable[[Bench, ModuleType], None]] = {
    "PIL.Image": _spy_on_images,
    "PIL.ImageFile": _spy_on_files,
    "PIL.TiffImagePlugin": _spy_on_tiff,
    "PIL.ImageOps": _spy_on_operations,
}


def _opening(bench: Bench, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def open_image(*arguments: Any, **options: Any) -> Any:
        if not bench.is_listening:
            return undisturbed(original, *arguments, **options)
        source = argument(arguments, options, 0, "fp")
        path = text_path(source)
        with bench.inside("decode"):
            try:
                image = original(*arguments, **options)
            except Exception as error:
                bench.seen.note_refusal(path or bench.seen.in_hand, error)
                raise
        bench.note_image(
            DecodedImage(path=path, format=image.format, mode=image.mode, size=(int(image.size[0]), int(image.size[1])))
        )
        encoded = source.getvalue() if path is None and isinstance(source, io.BytesIO) else path
        bench.seen.add(Picture(reader="Pillow", source=encoded, path=path or bench.seen.in_hand), image)
        return image

    return open_image


def _loading(bench: Bench, original: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    @functools.wraps(original)
    def load(self: Any, *arguments: Any, **options: Any) -> Any:
        if not getattr(self, "tile", None):
            return original(self, *arguments, **options)  # loaded before: Pillow calls it again and again
        if not bench.is_listening:
            return undisturbed(original, self, *arguments, **options)
        with bench.inside("decode"):
            picture = bench.seen.of(self)
            path = picture.path if picture is not None else bench.seen.in_hand
            try:
                pixels = original(self, *arguments, **options)
            except Exception as error:
                bench.seen.note_refusal(path, error)
                raise
        bench.seen.note_read(path)
        if picture is not None:
            picture.is_tolerant = picture.is_tolerant or bool(module.LOAD_TRUNCATED_IMAGES)
            # After `draft` it is smaller than the file says.
            if not picture.steps or picture.steps[-1].name != "load":
                bench.seen.note_step(self, ImageStep(name="load", before=self.size, after=self.size))
        return pixels

    return load


def _converting(bench: Bench, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def convert(self: Any, *arguments: Any, **options: Any) -> Any:
        if not bench.is_listening:
            return original(self, *arguments, **options)
        with bench.inside("decode"):
            try:
                made = original(self, *arguments, **options)
            except Exception as error:
                picture = bench.seen.of(self)
                bench.seen.note_refusal(bench.seen.in_hand if picture is None else picture.path, error)
                raise
            if made.mode != self.mode:
                highest = _highest(self) if self.mode.startswith(("I", "F")) else None
                detail = f"{self.mode} -> {made.mode}"
                step = ImageStep(name="convert", detail=detail, before=self.size, after=made.size, highest=highest)
                bench.seen.note_step(self, step)
            bench.seen.derive(self, made)
        return made

    return convert


def _highest(image: Any) -> float | None:
    """Largest value; one pass in C."""
    found = image.getextrema()
    return float(found[1]) if isinstance(found, tuple) and isinstance(found[1], (int, float)) else None


def _resizing(bench: Bench, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def resize(self: Any, *arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        made = original(self, *arguments, **options)
        wall_s = time.perf_counter() - started
        if bench.is_listening and made is not self:
            box = argument(arguments, options, 2, "box")
            before = self.size if box is None else (round(box[2] - box[0]), round(box[3] - box[1]))
            chosen = argument(arguments, options, 1, "resample")
            name = _filter_of(self.mode, chosen)
            step = ImageStep(
                name="resize",
                detail=name,
                before=before,
                after=made.size,
                smooths=name != "NEAREST" and before != made.size,
                wall_s=wall_s,
            )
            bench.seen.note_step(self, step)
            bench.seen.derive(self, made)
        return made

    return resize


def _filter_of(mode: str, chosen: Any) -> str:
    """Name of the filter that Pillow takes. Source: Pillow, Image.resize: palettes and bits are never interpolated."""
    if mode in {"1", "P"}:
        return "NEAREST"
    if chosen is None:
        return "NEAREST" if mode.startswith("I;16") else "BICUBIC"
    return _FILTERS.get(int(chosen), str(chosen))


def _deriving(bench: Bench, original: Callable[..., Any], name: str, place: int = 0) -> Callable[..., Any]:
    """Around what makes one image of another: followed, and noted unless it only copies."""
    takes_filter = {"rotate": (2, "resample"), "transform": (4, "resample")}.get(name)

    @functools.wraps(original)
    def derived(*arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        if not bench.is_listening or not arguments:
            return made
        source = arguments[place]
        size = getattr(source, "size", None)
        in_place = made is None or made is source
        if name not in {"copy", "fromarray", "point", "filter", "quantize"} and isinstance(size, tuple):
            detail = ""
            if takes_filter is not None:
                detail = _filter_of(source.mode, argument(arguments, options, *takes_filter, 0))
            if name in {"rotate", "transpose"}:
                detail = (
                    f"{argument(arguments, options, 1, 'angle' if name == 'rotate' else 'method')} {detail}".strip()
                )
            after = source.size if in_place else made.size
            smooths = takes_filter is not None and not detail.endswith("NEAREST")
            step = ImageStep(name=name, detail=detail, before=size, after=after, smooths=smooths)
            bench.seen.note_step(source, step)
        if not in_place:
            bench.seen.derive(source, made)
        return made

    return derived


def _asking(bench: Bench, original: Callable[..., Any]) -> Callable[..., Any]:
    """Around a look at the EXIF data: of interest if the user's own code looks, which then knows the orientation."""

    @functools.wraps(original)
    def getexif(self: Any, *arguments: Any, **options: Any) -> Any:
        if bench.is_listening and is_user_code(sys._getframe(1).f_code.co_filename):
            bench.seen.note_step(self, ImageStep(name="getexif", before=self.size, after=self.size))
        return original(self, *arguments, **options)

    return getexif
