"""Made-up evidence on files and what decoding made of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from headrace.doctor.evidence.decoding import (
    Decoding,
    FieldLook,
    ImageStep,
    PictureLook,
    SampleDecoding,
    Swallowed,
)
from headrace.errors import SampleId

__all__ = ["decoded", "decoding", "mask", "picture", "step", "swallowed"]


def step(name: str, detail: str = "", *, before: tuple[int, int] = (64, 48), **more: Any) -> ImageStep:
    """Something done to an image; its size stays if no `after` is given."""
    return ImageStep(name=name, detail=detail, before=before, **{"after": before, **more})


def picture(path: str, mode: str = "RGB", *steps: ImageStep, **more: Any) -> PictureLook:
    """A PNG of 64 x 48 that became the field `image`, if nothing else is said."""
    usual = {"reader": "Pillow", "format": "PNG", "size": (64, 48), "field": "image"}
    return PictureLook(path=path, mode=mode, steps=steps, **{**usual, **more})


def mask(*values: float, field: str = "mask", dtype: str = "int64", shape: tuple[int, ...] = (48, 64)) -> FieldLook:
    """A mask with these distinct values; more than 256 if none are given."""
    return FieldLook(field=field, dtype=dtype, shape=shape, is_mask=True, values=values or None)


def decoded(
    *pictures: PictureLook,
    fields: tuple[FieldLook, ...] = (),
    sample_id: SampleId = -1,
    decode_s: float = 0.0,
    wall_s: float = 0.0,
) -> SampleDecoding:
    """One sample and its files. `decoding` gives it its row number, which is its id if none is given."""
    return SampleDecoding(
        index=-1,
        sample_id=sample_id,
        path=pictures[0].path if pictures else None,
        pictures=pictures,
        fields=fields,
        decode_s=decode_s,
        wall_s=wall_s,
    )


def swallowed(row: int, error_type: str = "OSError", error_message: str = "", **more: Any) -> Swallowed:
    """An error of a decoder that stayed inside, if nothing else is said."""
    usual: dict[str, Any] = {
        "sample_id": row,
        "path": f"data/{row}.jpg",
        "at": "data.py:41 in __getitem__",
        "by_decoder": True,
    }
    return Swallowed(index=row, error_type=error_type, error_message=error_message, **{**usual, **more})


def decoding(*samples: SampleDecoding, num_examined: int = 0, **more: Any) -> Decoding:
    """Samples as rows 0, 1, 2, ... of a data set of which no more than those are examined, if nothing else is said."""
    rows = tuple(
        dataclasses.replace(one, index=row, sample_id=row if one.sample_id == -1 else one.sample_id)
        for row, one in enumerate(samples)
    )
    total = num_examined or len(rows)
    return Decoding(samples=rows, **{"num_examined": total, "num_samples": total, **more})
