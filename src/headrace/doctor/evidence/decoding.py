"""What a few samples show when their files are looked at apart, and when errors that stay inside are watched."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = ["Decoding", "FieldLook", "ImageStep", "Oversize", "PictureLook", "SampleDecoding", "Swallowed"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ImageStep:
    """One thing that was done to a decoded image while its sample was prepared, as a library's own call shows it."""

    name: str
    """load, convert, resize, crop, rotate, transpose, exif_transpose, getexif, ..."""
    detail: str = ""
    """`I;16 -> L`, `BILINEAR`, ..."""
    before: tuple[int, int]
    """(width, height) that went in; for a crop and a resize in one, of the part that is used."""
    after: tuple[int, int]
    smooths: bool = False
    """True if neighbouring values were mixed."""
    highest: float | None = None
    """Largest value that went into a conversion from more than 8 bits; None: not such a conversion."""
    wall_s: float = 0.0
    """Seconds that a resize took; 0 for other steps."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PictureLook:
    """One image or array file of a sample: as it is stored, what was done to it, and what it became."""

    path: str | None
    """None: decoded from memory, out of an archive for example."""
    reader: str
    """Pillow, OpenCV, NumPy, ..."""
    format: str | None
    mode: str
    """Pillow's mode of the file as it is stored; `int32` and the like for arrays."""
    size: tuple[int, int]
    """(width, height) as stored."""
    orientation: int = 1
    """EXIF tag 0x0112; 1 = upright, also where there is none."""
    values: tuple[int, ...] | None = None
    """Distinct values of a single-channel file, at most 256; for a palette its indices. None: more, or colour."""
    minimum: float | None = None
    """Smallest stored value of a single-channel file."""
    maximum: float | None = None
    palette: tuple[tuple[int, int, int], ...] = ()
    """Colours of the indices in `values`, in their order; empty: no palette."""
    flat_share: float | None = None
    """Share of pixels that hold one of the eight most frequent values, single-channel files only: near 1 for masks."""
    steps: tuple[ImageStep, ...] = ()
    field: str | None = None
    """Field of the sample that it became, as far as shape and likeness tell."""
    like_stored: float | None = None
    """Correlation of the field's coarse picture with the file's as it is stored, the better of it and its mirror image."""
    like_upright: float | None = None
    """The same with the file turned as its tag says."""
    above_8_bit: float | None = None
    """Share of stored values above 255; None for files of 8 bits."""
    like_clipped: float | None = None
    """How far the field's distribution follows the stored values clipped at 255: 1 = it is a linear function of them."""
    like_wrapped: float | None = None
    """The same for the stored values modulo 256."""
    like_scaled: float | None = None
    """The same for the stored values themselves, their root or logarithm, or without outliers: what healthy scaling gives."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldLook:
    """One field of a sample with two spatial dimensions."""

    field: str
    dtype: str
    shape: tuple[int, ...]
    is_mask: bool
    """True for a target, or what has the name, the dtype or the place of a mask of class numbers."""
    values: tuple[float, ...] | None
    """Distinct values, at most 256; None: more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SampleDecoding:
    """One sample, prepared once more and compared with its files."""

    index: int
    sample_id: SampleId
    path: str | None
    pictures: tuple[PictureLook, ...]
    fields: tuple[FieldLook, ...]
    decode_s: float
    """Seconds of its first preparation that decoders took."""
    wall_s: float
    """Seconds that its first preparation took."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Swallowed:
    """An error that was raised while a sample was prepared, and stayed inside: the sample came out all the same."""

    index: int
    sample_id: SampleId
    path: str | None
    """The file that was in hand."""
    error_type: str
    """Class name; empty if a decoder only returned nothing."""
    error_message: str
    at: str | None
    """`file:line in function`: the user's frame that kept the error inside; None: not seen."""
    by_decoder: bool
    """True if a decoder refused the file; False: raised in code that may raise for other reasons."""
    is_missing: bool = False
    """True if the file is not there."""
    recovered: bool = False
    """True if the same file, or another one of the same name, was read afterwards without an error."""
    answered_row: int | None = None
    """Row that the data set asked itself for instead."""
    answered_path: str | None = None
    """File of another row that was read instead."""
    equal_to: SampleId | None = None
    """Another examined sample with the same content."""
    is_placeholder: bool = False
    """True if the largest field is constant here, and in most other samples not."""
    flagged_by: str | None = None
    """A field by which the sample says itself that it is not valid."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Oversize:
    """One large file decoded by the doctor, in full and as small as its use allows."""

    path: str
    full_s: float
    reduced_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decoding(Evidence):
    """Files and samples side by side, for as many samples as time allows; errors kept inside, for all examined ones."""

    num_examined: int
    """Samples that were prepared at least once and came out."""
    num_samples: int
    samples: tuple[SampleDecoding, ...]
    swallowed: tuple[Swallowed, ...] = ()
    cut_off: tuple[tuple[SampleId, str], ...] = ()
    """(sample, path) of images that are cut off and were decoded all the same, because truncated loading is on."""
    oversize: Oversize | None = None
