"""Compares one sample with the files that it was made of; keeps numbers, no pixels."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.contract.view import as_array, flatten
from headrace.doctor.evidence.decoding import FieldLook, PictureLook
from headrace.doctor.lab.sightings import Picture
from headrace.doctor.probes.likeness import as_plane, coarse_likeness, distinct, linear_likeness, turned
from headrace.doctor.probes.raw_files import RawFile, open_raw

__all__ = ["compare"]

MAX_FIELDS = 64
_MASK_NAMES = ("mask", "masks", "segmentation", "seg", "semantic", "annotation", "label", "labels", "target", "targets")
_TOP = 8
MAX_COUNTED = 500_000
"""Pixels that are counted by value: of a larger picture every so manieth."""
FLAT = 0.9
"""Share of pixels in the eight most frequent values from which on a file is taken for a mask."""
FLAT_JPEG = 0.6

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True, slots=True)
class _Plane:
    look: FieldLook
    pixels: Array


def compare(
    sample: Any, pictures: Sequence[Picture], targets: Collection[str]
) -> tuple[tuple[PictureLook, ...], tuple[FieldLook, ...]]:
    """Returns what each picture is and became, and what each field with two spatial dimensions is."""
    planes = _planes(sample, targets)
    raws = [open_raw(picture.source) for picture in pictures]
    looks = [_look(picture, raw, planes) for picture, raw in zip(pictures, raws, strict=True) if raw is not None]
    return tuple(looks), tuple(plane.look for plane in planes)


def _planes(sample: Any, targets: Collection[str]) -> list[_Plane]:
    found: list[_Plane] = []
    try:
        leaves = list(itertools.islice(flatten(sample), MAX_FIELDS))
    except Exception:  # a sample that cannot be looked into
        return found
    for field, value in leaves:
        array = as_array(_as_pixels(value))
        plane = None if array is None or array.ndim < 2 else as_plane(array)
        if array is None or plane is None:
            continue
        values = distinct(array)
        look = FieldLook(
            field=field,
            dtype=str(array.dtype),
            shape=tuple(array.shape),
            is_mask=_is_mask(field, array, plane, found, targets),
            values=None if values is None else tuple(float(one) for one in values),
        )
        found.append(_Plane(look, plane))
    return found


def _as_pixels(value: Any) -> Any:
    """A sample may still hold Pillow's images, for a collate function to convert."""
    is_image = type(value).__module__.startswith("PIL.") and hasattr(value, "tobytes")
    return np.asarray(value) if is_image else value


def _is_mask(field: str, array: Array, plane: Array, before: Sequence[_Plane], targets: Collection[str]) -> bool:
    """By the contract or the usual names, by the dtype that only class numbers have, or beside an image of its size."""
    if any(name in _MASK_NAMES for name in field.lower().replace("_", ".").split(".")) or field in targets:
        return True
    if array.dtype.kind not in "iub":
        return False
    is_single = array.ndim == 2 or 1 in {array.shape[0], array.shape[-1]}
    if is_single and array.dtype.kind == "i" and array.dtype.itemsize >= 4:
        return True
    return any(one.pixels.shape == plane.shape for one in before) and "." not in field and field.isdigit()


def _look(picture: Picture, raw: RawFile, planes: Sequence[_Plane]) -> PictureLook:
    single = raw.array if raw.array is not None and raw.array.ndim == 2 else None
    values = None if single is None or single.dtype.kind == "f" else distinct(single)
    look = PictureLook(
        path=picture.path,
        reader=picture.reader,
        format=raw.format,
        mode=raw.mode,
        size=raw.size,
        orientation=raw.orientation,
        values=None if values is None else tuple(int(one) for one in values),
        minimum=None if single is None else float(single.min()),
        maximum=None if single is None else float(single.max()),
        palette=_colours(raw, values),
        flat_share=None if single is None else _flat_share(single),
        steps=tuple(picture.steps),
    )
    plane = _choose(raw, planes)
    if plane is None or raw.array is None:
        return look
    look = dataclasses.replace(look, field=plane.look.field)
    if raw.orientation != 1:
        look = dataclasses.replace(
            look,
            like_stored=coarse_likeness(raw.array, plane.pixels),
            like_upright=coarse_likeness(turned(raw.array, raw.orientation), plane.pixels),
        )
    if single is not None and single.dtype.kind in "iu" and look.maximum is not None and look.maximum > 255:
        look = _with_depth(look, single, _candidates(raw, planes))
    return look


def _with_depth(look: PictureLook, single: Array, planes: Sequence[_Plane]) -> PictureLook:
    """The look, with what became of values above 255, in the field that explains most."""
    lost = {"like_clipped": np.minimum(single, 255), "like_wrapped": single % 256}
    kept = _sound(single)
    best, best_field = dict.fromkeys([*lost, "like_scaled"], -1.0), look.field
    for plane in planes:
        if plane.look.values is not None and len(plane.look.values) <= 2:
            continue  # a threshold of the values, such as where a depth is known: it tells nothing of their scale
        alike = linear_likeness(lost | kept, plane.pixels)
        found = {name: alike[name] for name in lost} | {"like_scaled": max(alike[name] for name in kept)}
        if max(found.values()) > max(best.values()):
            best, best_field = found, plane.look.field
    if best_field is None or max(best.values()) < 0:
        return look
    told: dict[str, Any] = {"field": best_field, "above_8_bit": float((single > 255).mean()), **best}
    return dataclasses.replace(look, **told)


def _sound(single: Array) -> dict[str, Array]:
    """What people make of 16 bits that keeps what matters: scaled, by root or logarithm, without the few outliers."""
    values = single.astype(np.float32)
    low, high, highest = np.percentile(values, [1, 99, 99.8])
    return {
        "scaled": values,
        "root": np.sqrt(np.maximum(values, 0)),
        "logarithm": np.log1p(np.maximum(values, 0)),
        "between the percentiles": np.clip(values, low, high),
        "below the highest": np.minimum(values, highest),
    }


def _colours(raw: RawFile, values: Array | None) -> tuple[tuple[int, int, int], ...]:
    if raw.palette is None or values is None or len(values) == 0 or int(values.max()) >= len(raw.palette):
        return ()
    return tuple((int(red), int(green), int(blue)) for red, green, blue in raw.palette[values])


def _flat_share(single: Array) -> float:
    pixels = single.ravel()[:: max(1, single.size // MAX_COUNTED)]
    counts = np.unique(pixels, return_counts=True)[1]
    return float(np.sort(counts)[-_TOP:].sum() / pixels.size)


def _candidates(raw: RawFile, planes: Sequence[_Plane]) -> list[_Plane]:
    """Fields of the file's kind: masks for what has few values, else images; all of them if there are none."""
    is_single = raw.array is not None and raw.array.ndim == 2
    # JPEG surrounds what was flat with other values.
    least = FLAT_JPEG if raw.format == "JPEG" else FLAT
    looks_like_mask = is_single and raw.array is not None and _flat_share(raw.array) > least
    return [plane for plane in planes if plane.look.is_mask == looks_like_mask] or list(planes)


def _choose(raw: RawFile, planes: Sequence[_Plane]) -> _Plane | None:
    """The field that a file became: of those of its kind the one that is most alike."""
    candidates = _candidates(raw, planes)
    if len(candidates) <= 1 or raw.array is None:
        return candidates[0] if candidates else None
    views = (raw.array, turned(raw.array, raw.orientation))

    def likeness(plane: _Plane) -> float:
        return max(abs(coarse_likeness(view, plane.pixels) or 0.0) for view in views)

    return max(candidates, key=likeness)
