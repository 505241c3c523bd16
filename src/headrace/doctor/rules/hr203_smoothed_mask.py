"""HR203 smoothed-mask: a mask of class numbers holds numbers that its file does not, because neighbours were mixed."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.decoding import Decoding, FieldLook, ImageStep, PictureLook, SampleDecoding
from headrace.doctor.made_up.decoding import decoded, decoding, mask, picture, step
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, named, verb
from headrace.errors import SampleId

MOST_CLASSES = 64
"""Distinct values up to which a file is taken for class numbers and not for a photograph."""
MOST_CLASSES_AS_FLOAT = 32
FLAT = 0.6
"""Share of pixels in the eight most frequent values from which on a JPEG is taken for a mask."""


@dataclasses.dataclass(frozen=True, slots=True)
class Smoothed:
    """One mask with values that do not come from its file."""

    sample_id: SampleId
    look: PictureLook
    field: FieldLook
    cause: ImageStep | None
    is_jpeg: bool
    new: tuple[float, ...]
    """Values that the file does not hold; empty if they are too many to list."""


class SmoothedMask(Rule):
    """HR203."""

    code = "HR203"
    name = "smoothed-mask"
    summary = "Masks of class numbers in which resizing, rotating or JPEG has made numbers that no file holds."
    rationale = """
        Between class 1 and class 3 a bilinear filter puts class 2, and between class 0 and "ignore" (255) all the
        others: objects get a rim of classes that are not there, and some numbers are beyond the last class, which ends
        in a device-side assert. The image and its mask are resized by the same line of code, which is right for one of
        them. A mask that was saved as JPEG has such rims in the file already.

        It is no fault to use the nearest neighbour, to map numbers to other numbers (a mapping never makes more of
        them), to smooth a mask and cut it at a threshold afterwards, or to smooth a float mask on purpose (soft labels,
        heat maps).
        """
    experiment = """
        The distinct values of the mask files of a few samples, read as they are stored after the samples came out, are
        held against the distinct values of the delivered masks; the steps in between tell the cause. Nothing is changed.
        """
    needs = (Decoding,)
    fix = Fix(
        text="Resize, rotate and warp masks with the nearest neighbour.",
        safety="changes the rims of the objects in the masks, and nothing else",
        snippet="from PIL import Image\n\n\n"
        "def resize_mask(mask, size):\n"
        "    return mask.resize(size, Image.Resampling.NEAREST)",
    )
    references = ("pytorch-semseg#246", "open_model_zoo#868")

    def judge(self, seen: Decoding) -> list[Finding]:
        """One finding for each field and cause."""
        found = [one for sample in seen.samples for one in _smoothed(sample)]
        groups: dict[tuple[str, bool], list[Smoothed]] = {}
        for one in found:
            groups.setdefault((one.field.field, one.is_jpeg), []).append(one)
        return [_finding(members, seen) for members in groups.values()]

    sick = (
        Example(
            title="A mask resized like its image",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.png",
                            "L",
                            step("resize", "BILINEAR", after=(32, 24), smooths=True),
                            values=(0, 1, 3, 255),
                            flat_share=1.0,
                            field="mask",
                        ),
                        fields=(mask(0, 1, 2, 3, 85, 170, 255),),
                    ),
                ),
            ),
            message="1 of 1 samples looked at has class numbers in field 'mask' that its file does not hold (sample 0): on "
            "disk 0, 1, 3, 255, delivered also 2, 85, 170, made by resize with BILINEAR",
            sample_ids=(0,),
        ),
        Example(
            title="A mask saved as JPEG",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.jpg",
                            "L",
                            format="JPEG",
                            values=tuple(range(60)),
                            flat_share=0.93,
                            field="mask",
                        ),
                        fields=(mask(*range(60)),),
                    ),
                ),
            ),
            message="1 of 1 samples looked at has class numbers in field 'mask' that JPEG made (sample 0): the mask is "
            "stored as JPEG and holds 60 different values",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(
            title="The nearest neighbour, and numbers mapped to others",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.png",
                            "L",
                            step("resize", "NEAREST", after=(32, 24)),
                            values=(7, 8, 255),
                            flat_share=1.0,
                            field="mask",
                        ),
                        fields=(mask(0, 1, 19),),
                    ),
                ),
            ),
        ),
        Example(
            title="A binary mask, smoothed as a float",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.png",
                            "L",
                            step("resize", "BILINEAR", after=(32, 24), smooths=True),
                            values=(0, 255),
                            flat_share=1.0,
                            field="mask",
                        ),
                        fields=(mask(0.0, 0.25, 0.5, 0.75, 1.0, dtype="float32"),),
                    ),
                ),
            ),
        ),
    )


def _smoothed(sample: SampleDecoding) -> list[Smoothed]:
    fields = {view.field: view for view in sample.fields if view.is_mask}
    found = []
    for look in sample.pictures:
        view = fields.get(look.field or "")
        if view is None or look.flat_share is None or _is_shared(look, sample):
            continue
        if look.format == "JPEG":
            if _is_jpeg_mask(look, view):
                found.append(Smoothed(sample.sample_id, look, view, None, is_jpeg=True, new=()))
        elif look.values is not None and 2 <= len(look.values) <= MOST_CLASSES:
            cause = next((step for step in look.steps if step.smooths), None)
            if _has_more(look, view, cause):
                new = tuple(value for value in view.values or () if value not in look.values)
                found.append(Smoothed(sample.sample_id, look, view, cause, is_jpeg=False, new=new))
    return found


def _is_shared(look: PictureLook, sample: SampleDecoding) -> bool:
    """True if several files became this field: then it may hold more numbers than each of them."""
    return sum(other.field == look.field for other in sample.pictures) > 1


def _has_more(look: PictureLook, view: FieldLook, cause: ImageStep | None) -> bool:
    """True if there are more different numbers than on disk, which no mapping from number to number can make."""
    stored = look.values or ()
    # Without a step that explains it, one value more may be what filled the rim of a crop.
    is_more = view.values is None or len(view.values) > len(stored) + (cause is None)
    if not is_more:
        return False
    if view.dtype.startswith("float"):
        # Class numbers in a float tensor: three or more of them are no soft mask.
        is_numbered = 3 <= len(stored) <= MOST_CLASSES_AS_FLOAT and min(stored[-1], stored[-2]) < MOST_CLASSES
        return cause is not None and is_numbered and _highest(view) > 1
    if view.values is None:
        return cause is not None
    is_within = view.values[0] >= stored[0] and view.values[-1] <= stored[-1]
    if cause is not None:
        new = [value for value in view.values if value not in stored]
        return any(stored[0] < value < stored[-1] for value in new) or not is_within
    # Both ends survive smoothing; a distance map made of the mask has them not.
    return is_within and {stored[0], stored[-1]} <= set(view.values)


def _highest(view: FieldLook) -> float:
    return 256.0 if view.values is None else view.values[-1]


def _is_jpeg_mask(look: PictureLook, view: FieldLook) -> bool:
    """True if a JPEG has large areas of few values and its rims were delivered as class numbers."""
    is_flat = look.flat_share is not None and look.flat_share >= FLAT
    num_stored = 257 if look.values is None else len(look.values)
    num_delivered = 257 if view.values is None else len(view.values)
    return is_flat and num_stored > 8 and num_delivered > 8 and not view.dtype.startswith("float")


def _finding(members: list[Smoothed], seen: Decoding) -> Finding:
    first, ids = members[0], tuple(one.sample_id for one in members)
    has = verb(len(ids), "has", "have")
    beginning = (
        f"{len(ids)} of {len(seen.samples)} samples looked at {has} class numbers in field {first.field.field!r} that"
    )
    stored = first.look.values or ()
    if first.is_jpeg:
        number = f"{len(stored)}" if stored else "more than 256"
        message = f"{beginning} JPEG made {named(ids)}: the mask is stored as JPEG and holds {number} different values"
    else:
        delivered = listing([f"{value:g}" for value in first.new]) if first.new else "more than 256 others"
        by = (
            ""
            if first.cause is None
            else f", made by {first.cause.name} with {first.cause.detail or 'a smoothing filter'}"
        )
        its = verb(len(ids), "its file does", "their files do")
        message = f"{beginning} {its} not hold {named(ids)}: on disk {listing(stored)}, delivered also {delivered}{by}"
    return Finding(
        message=message,
        severity="error" if first.is_jpeg or first.cause is not None else "warning",
        confidence=0.9 if first.is_jpeg or first.cause is not None else 0.75,
        stage="decode" if first.is_jpeg else "transform",
        sample_ids=ids,
        where=first.look.path,
        evidence={
            "on_disk": list(stored[:64]),
            "delivered": None if first.field.values is None else list(first.field.values[:64]),
            "format": first.look.format,
            "step": None if first.cause is None else f"{first.cause.name} {first.cause.detail}".strip(),
        },
        fix=_as_png() if first.is_jpeg else _of_tensors() if first.look.format == "NPY" else None,
    )


def _of_tensors() -> Fix:
    return Fix(
        text="Resize, rotate and warp masks with the nearest neighbour.",
        safety="changes the rims of the objects in the masks, and nothing else",
        snippet="import torch.nn.functional as F\n\n\n"
        "def resize_mask(mask, size):  # [H, W] of class numbers\n"
        "    pixels = mask[None, None].float()\n"
        '    resized = F.interpolate(pixels, size, mode="nearest-exact")\n'
        "    return resized[0, 0].to(mask.dtype)",
    )


def _as_png() -> Fix:
    return Fix(
        text="Make the masks again from their source and save them as PNG, which keeps every number; rounding what JPEG "
        "left to the nearest class is second best.",
        safety="changes the rims of the objects in the masks",
        snippet="from PIL import Image\n\n\ndef save_mask(array, path):\n    Image.fromarray(array).save(path + '.png')",
    )
