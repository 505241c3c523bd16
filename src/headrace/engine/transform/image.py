"""Stages for pictures: `decode` and `random_resized_crop`; needs Pillow (`pip install 'headrace[image]'`).

    plan = hr.folder("photos").map(hr.image.random_resized_crop(224))

A picture is taken as encoded bytes (a record of `hr.folder`, a mapping with such a field, or bare bytes) or, if a stage
before has decoded it, as an array of the layout that `decode` makes. Axes: H rows, W columns, C channels.
"""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from headrace.engine.transform.image_crop import Box, draw_box, reduction
from headrace.engine.transform.image_region import decode_region
from headrace.errors import ConfigurationError, DataError, MissingExtra

__all__ = ["Decode", "RandomResizedCrop", "decode", "random_resized_crop"]

Layout = Literal["CHW", "HWC"]
Mode = Literal["RGB", "L"]
Pixels = npt.NDArray[np.uint8]

_ORIENTATION = 0x0112  # EXIF tag
# What makes an upright picture of a stored one (EXIF 2.3, tag 274), as the names of Pillow's transpositions.
_UPRIGHT = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


def decode(mode: Mode = "RGB", *, layout: Layout = "CHW", exif: bool = False, field: str = "image") -> Decode:
    """Returns the stage that decodes a picture, whole: uint8, (C, H, W) or (H, W, C).

    Args:
        mode: `"RGB"`: three channels. `"L"`: one, grey.
        layout: Order of the axes.
        exif: Turn the picture upright if its EXIF data say how it was held. Default: as stored, which is also what
            torchvision's loader gives.
        field: Name of the picture in mappings. A record of `hr.folder` becomes a dict of it and `label`.

    The stage raises DataError if the bytes are no picture, or only a part of one.
    """
    return Decode(mode=mode, layout=layout, exif=exif, field=field)


def random_resized_crop(
    size: int | tuple[int, int],
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    *,
    mode: Mode = "RGB",
    layout: Layout = "CHW",
    exif: bool = False,
    reduce: bool = True,
    field: str = "image",
) -> RandomResizedCrop:
    """Returns the random stage that takes a part of a picture at a drawn place and makes it `size` large: uint8.

    Given encoded bytes it draws first and then decodes no more than it has to: a JPEG of which the part is at least
    twice as large as `size` is decoded 2, 4 or 8 times smaller, which libjpeg does for a fraction of the work. Without
    that (`reduce=False`), the pixels are those of `decode` followed by this stage.

    Args:
        size: (height, width) in pixels, or one number for both.
        scale: Least and greatest share of the area that is taken.
        ratio: Least and greatest width by height of what is taken.
        mode: As for `decode`.
        layout: As for `decode`; also the layout of a picture that comes decoded.
        exif: As for `decode`.
        reduce: Allow decoding at reduced size. The result then differs by the decoder's own way of averaging, about
            as much as another resampling filter would make it.
        field: As for `decode`.

    Resampling: triangle filter over all pixels concerned (Pillow's BILINEAR, antialiased); the part is cut out first.
    """
    height, width = (size, size) if isinstance(size, int) else size
    return RandomResizedCrop(
        size=(height, width), scale=scale, ratio=ratio, mode=mode, layout=layout, exif=exif, reduce=reduce, field=field
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decode:
    """Stage that decodes a picture; see `decode`."""

    mode: Mode
    layout: Layout
    exif: bool
    field: str

    def __post_init__(self) -> None:
        _check_form(self.mode, self.layout)

    def __call__(self, sample: Any) -> Any:
        """Returns the sample with its picture decoded."""
        return _with_picture(sample, self.field, lambda data: self._decoded(_encoded(data)))

    def _decoded(self, data: bytes) -> Pixels:
        image = _opened(data)
        turn = _turn(image) if self.exif else None
        image = _loaded(image, data)
        return _as_array(image if turn is None else image.transpose(turn), self.mode, self.layout)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RandomResizedCrop:
    """Stage that takes a random part of a picture; see `random_resized_crop`."""

    size: tuple[int, int]
    scale: tuple[float, float]
    ratio: tuple[float, float]
    mode: Mode
    layout: Layout
    exif: bool
    reduce: bool
    field: str

    def __post_init__(self) -> None:
        _check_form(self.mode, self.layout)
        if len(self.size) != 2 or min(self.size) < 1:
            raise ConfigurationError(f"size={self.size}: expected (height, width), each 1 or more")
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ConfigurationError(f"scale={self.scale}: expected 0 < least <= greatest <= 1, shares of the area")
        if not 0 < self.ratio[0] <= self.ratio[1] < math.inf:
            raise ConfigurationError(f"ratio={self.ratio}: expected 0 < least <= greatest, width by height")

    def __call__(self, sample: Any, rng: np.random.Generator) -> Any:
        """Returns the sample with its picture replaced by a part of it."""
        return _with_picture(sample, self.field, lambda data: self._cropped(data, rng))

    def _cropped(self, data: Any, rng: np.random.Generator) -> Pixels:
        if isinstance(data, np.ndarray):
            image = _as_image(data, self.mode, self.layout)
            box = draw_box(image.width, image.height, self.scale, self.ratio, rng)
            return self._resized(image.crop(box))
        data = _encoded(data)
        image = _opened(data)
        turn = _turn(image) if self.exif else None
        if turn is None:
            box = draw_box(image.width, image.height, self.scale, self.ratio, rng)
            return self._resized(*self._part(image, data, box, self.size))
        # Drawn as for the upright picture, taken from the stored one, and the part is turned.
        is_lying = turn in _lying_turns()
        width, height = (image.height, image.width) if is_lying else (image.width, image.height)
        box = _stored_box(draw_box(width, height, self.scale, self.ratio, rng), turn, image.size)
        part, inner = self._part(image, data, box, self.size[::-1] if is_lying else self.size)
        if inner is None:
            return self._resized(part.transpose(turn))
        return self._resized(part.transpose(turn), _turned_box(inner, turn, part.size))

    def _part(self, image: Any, data: bytes, box: Box, size: tuple[int, int]) -> tuple[Any, tuple[float, ...] | None]:
        """Returns pixels around a part, and the place of the part among them; None: they are the part."""
        width, height = image.size
        step = reduction(box, size) if self.reduce and image.format == "JPEG" else 1
        if step > 1:
            image.draft(None, (width // step, height // step))
        if image.size == (width, height):
            return self._cut(image, data, 1, box), None
        by_x, by_y = image.width / width, image.height / height
        left, top, right, bottom = box.left * by_x, box.top * by_y, box.right * by_x, box.bottom * by_y
        outer = Box(int(left), int(top), min(math.ceil(right), image.width), min(math.ceil(bottom), image.height))
        inner = (left - outer.left, top - outer.top, right - outer.left, bottom - outer.top)
        part = self._cut(image, data, step, outer)
        return part, (*inner[:2], min(inner[2], part.width), min(inner[3], part.height))

    def _cut(self, image: Any, data: bytes, step: int, box: Box) -> Any:
        """Returns the pixels of a box, with nothing else decoded where that can be done."""
        if image.format == "JPEG" and image.mode == self.mode == "RGB" and (box.width, box.height) != image.size:
            pixels = decode_region(data, step, image.size, box)
            if pixels is not None:
                from PIL import Image

                return Image.fromarray(pixels)
        return _loaded(image, data).crop(box)

    def _resized(self, image: Any, box: tuple[float, ...] | None = None) -> Pixels:
        from PIL import Image

        # The mode first: a palette, for one, cannot be averaged.
        image = image if image.mode == self.mode else image.convert(self.mode)
        return _as_array(image.resize(self.size[::-1], Image.Resampling.BILINEAR, box), self.mode, self.layout)


# The sample around the picture.


def _with_picture(sample: Any, field: str, make: Any) -> Any:
    """Returns the sample with its picture replaced by what `make` makes of it."""
    if isinstance(sample, (bytes, bytearray, memoryview, np.ndarray)):
        return make(sample)
    if isinstance(sample, Mapping):
        if field not in sample:
            raise DataError(f"the sample has no field {field!r}; it has {', '.join(map(repr, sample))}", do="field=...")
        return {**sample, field: make(sample[field])}
    if isinstance(getattr(sample, "data", None), bytes):  # a record of `folder`
        label = getattr(sample, "label", None)
        picture = {field: make(sample.data)}
        return picture if label is None else {**picture, "label": label}
    raise DataError(
        f"expected a picture, or a mapping with one, and got {type(sample).__qualname__}",
        do="give this stage the record of hr.folder, a dict with the field 'image', or bytes",
    )


def _encoded(data: Any) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise DataError(f"expected the bytes of a picture, and got {type(data).__qualname__}")


# Pillow.


def _check_form(mode: str, layout: str) -> None:
    """Refuses forms that are not known, and a missing library, when the stage is made."""
    for name, value, known in (("mode", mode, get_args(Mode)), ("layout", layout, get_args(Layout))):
        if value not in known:
            raise ConfigurationError(f"{name}={value!r}: expected one of {', '.join(map(repr, known))}")
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingExtra("decoding pictures needs Pillow", do="pip install 'headrace[image]'") from error


def _opened(data: bytes) -> Any:
    """Returns the picture with its head read and no pixel decoded."""
    from PIL import Image

    try:
        return Image.open(io.BytesIO(data))
    except Exception as error:
        raise _undecodable(error, data) from error


def _loaded(image: Any, data: bytes) -> Any:
    try:
        image.load()
    except Exception as error:
        raise _undecodable(error, data) from error
    return image


def _undecodable(error: Exception, data: bytes) -> DataError:
    from PIL import UnidentifiedImageError

    if not data:
        return DataError("cannot decode an empty file as a picture", why="probably a download that was cut off")
    if isinstance(error, UnidentifiedImageError):
        head = data[:8].hex(" ")
        return DataError(f"cannot decode {len(data):,} bytes as a picture: no known format begins with {head}")
    return DataError(f"cannot decode {len(data):,} bytes as a picture: {error}")


def _as_array(image: Any, mode: str, layout: str) -> Pixels:
    image = image if image.mode == mode else image.convert(mode)
    pixels: Pixels = np.array(image, dtype=np.uint8)
    if mode == "L":
        return pixels[None] if layout == "CHW" else pixels[..., None]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) if layout == "CHW" else pixels


def _as_image(pixels: Pixels, mode: str, layout: str) -> Any:
    """Returns a decoded picture as Pillow's; refuses one of another form than `decode` makes."""
    from PIL import Image

    channels = {"RGB": 3, "L": 1}[mode]
    axis = 0 if layout == "CHW" else -1
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[axis] != channels:
        raise DataError(
            f"expected a picture of {channels} channels as uint8 {layout}, and got {pixels.dtype} {pixels.shape}",
            do="the same mode and layout for decode(...) and random_resized_crop(...)",
        )
    if mode == "L":
        return Image.fromarray(pixels[0] if layout == "CHW" else pixels[..., 0])
    return Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)) if layout == "CHW" else pixels)


# Orientation.


def _turn(image: Any) -> Any:
    """Returns Pillow's transposition that makes the picture upright; None if it is, or if nothing is said."""
    from PIL import Image

    name = _UPRIGHT.get(image.getexif().get(_ORIENTATION, 1))
    return None if name is None else Image.Transpose[name]


def _lying_turns() -> tuple[Any, ...]:
    """The transpositions that exchange width and height."""
    from PIL.Image import Transpose

    return Transpose.ROTATE_90, Transpose.ROTATE_270, Transpose.TRANSPOSE, Transpose.TRANSVERSE


def _stored_box(box: Box, turn: Any, stored: tuple[int, int]) -> Box:
    """Returns where in the stored picture, (width, height), a part of the upright one lies."""
    from PIL.Image import Transpose

    inverse = {Transpose.ROTATE_90: Transpose.ROTATE_270, Transpose.ROTATE_270: Transpose.ROTATE_90}.get(turn, turn)
    upright = stored[::-1] if turn in _lying_turns() else stored
    left, top, right, bottom = _turned_box(box, inverse, upright)
    return Box(int(left), int(top), int(right), int(bottom))


def _turned_box(box: tuple[float, ...], turn: Any, size: tuple[int, int]) -> tuple[float, ...]:
    """Returns where a part of a picture, (width, height), lies after a transposition."""
    left, top, right, bottom = box
    width, height = size
    return {
        "FLIP_LEFT_RIGHT": (width - right, top, width - left, bottom),
        "FLIP_TOP_BOTTOM": (left, height - bottom, right, height - top),
        "ROTATE_180": (width - right, height - bottom, width - left, height - top),
        "ROTATE_90": (top, width - right, bottom, width - left),
        "ROTATE_270": (height - bottom, left, height - top, right),
        "TRANSPOSE": (top, left, bottom, right),
        "TRANSVERSE": (height - bottom, width - right, height - top, width - left),
    }[turn.name]
