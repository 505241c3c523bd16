"""HR104 ignored-orientation: photographs whose EXIF tag says that they lie on their side are delivered as they lie."""

from __future__ import annotations

from headrace.doctor.evidence.decoding import Decoding, PictureLook, SampleDecoding
from headrace.doctor.made_up.decoding import decoded, decoding, mask, picture, step
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, verb

MEANINGS = {
    2: "mirrored",
    3: "upside down",
    4: "upside down and mirrored",
    5: "on its side and mirrored",
    6: "on its side",
    7: "on its side and mirrored",
    8: "on its side",
}
"""What the stored picture looks like. Source: Exif 2.3, table 6."""
TURNS = frozenset({"exif_transpose", "transpose", "rotate", "warpAffine"})
"""Steps that may be the data set's own way of turning pictures upright."""
IS_LIKE = 0.85
"""Correlation of coarse pictures from which on one is the other; a crop of nine tenths keeps about that."""
IS_LIKER = 0.15
"""Difference from which on the better one is believed."""


SURELY_LIKE, UNLIKE = 0.95, 0.5


class IgnoredOrientation(Rule):
    """HR104."""

    code = "HR104"
    name = "ignored-orientation"
    summary = "Photographs with an EXIF orientation that are delivered as stored: on their side or upside down."
    rationale = """
        Cameras store what the sensor saw and note in a tag how it was held. Viewers, annotation tools and OpenCV turn
        the picture; Pillow, torchvision and most others do not, unless they are asked to. Then boxes, masks and
        captions made by people who saw the picture upright belong to another picture, and a part of the training data
        lies on its side. Nothing fails.

        It is no fault if there is no tag or it says upright, if the data set turns the picture (in whatever way: what
        comes out is compared with the file), or if a mask file of the same sample has the size of the stored picture,
        so that the annotations were made on it as it lies.
        """
    experiment = """
        The tag is read from the files of a few samples after these came out, and a coarse picture of each delivered
        field is compared with the file as stored and as the tag wants it. Nothing is changed.
        """
    needs = (Decoding,)
    fix = Fix(
        text="Turn the picture where it is opened; then check boxes and masks of these files, which may have been made to "
        "fit the stored picture.",
        safety="changes the named pictures only; their annotations may have to change with them",
        snippet="from PIL import Image, ImageOps\n\n"
        "def open_upright(path):\n"
        "    return ImageOps.exif_transpose(Image.open(path))",
    )
    references = ("sd-scripts#1316", "DALI#3120", "detectron2#262", "yolov5#405", "tensorflow#49834")

    def judge(self, seen: Decoding) -> list[Finding]:
        """One finding for all."""
        found = [
            (sample, look, sure)
            for sample in seen.samples
            for look in sample.pictures
            if (sure := _confidence(look, sample)) >= 0.5
        ]
        if not found:
            return []
        by_sample = {sample.index: (sample, look, sure) for sample, look, sure in reversed(found)}
        ordered = [by_sample[index] for index in sorted(by_sample)]
        (_, first, sure), ids = ordered[0], tuple(sample.sample_id for sample, _, _ in ordered)
        lies = verb(len(ids), "lies", "lie")
        return [
            Finding(
                message=f"{len(ids)} of {len(seen.samples)} samples looked at {lies} as stored, although the file's EXIF "
                f"tag says how to turn the picture ({named(ids)[1:-1]}: orientation {first.orientation}, "
                f"{MEANINGS[first.orientation]})",
                severity="warning",
                confidence=sure,
                stage="decode",
                sample_ids=ids,
                where=first.path,
                evidence={
                    "orientations": {str(sample.sample_id): look.orientation for sample, look, _ in ordered},
                    "stored_size": list(first.size),
                    "field": first.field,
                    "like_stored": _rounded(first.like_stored),
                    "like_upright": _rounded(first.like_upright),
                },
                fix=_fix_for(first.reader),
            )
        ]

    sick = (
        Example(
            title="A photograph taken upright, delivered on its side",
            evidence=(
                decoding(
                    decoded(picture("a.jpg")),
                    decoded(picture("b.jpg", orientation=6, like_stored=0.98, like_upright=0.1)),
                ),
            ),
            message="1 of 2 samples looked at lies as stored, although the file's EXIF tag says how to turn the picture "
            "(sample 1: orientation 6, on its side)",
            sample_ids=(1,),
        ),
        Example(
            title="Two photographs cropped so that no likeness is left, and no step that turns them",
            evidence=(
                decoding(
                    decoded(picture("a.jpg", "RGB", step("resize", "BILINEAR"), orientation=3, like_stored=0.3)),
                    decoded(picture("b.jpg", "RGB", step("resize", "BILINEAR"), orientation=8, like_stored=0.2)),
                ),
            ),
            message="2 of 2 samples looked at lie as stored, although the file's EXIF tag says how to turn the picture "
            "(first sample 0: orientation 3, upside down)",
            sample_ids=(0, 1),
        ),
    )
    healthy = (
        Example(
            title="Turned by Pillow, by OpenCV, or by hand",
            evidence=(
                decoding(
                    decoded(picture("a.jpg", "RGB", step("exif_transpose"), orientation=6)),
                    decoded(picture("b.jpg", orientation=6, like_stored=0.1, like_upright=0.97)),
                ),
            ),
        ),
        Example(
            title="Annotations that were made on the picture as it lies",
            evidence=(
                decoding(
                    decoded(
                        picture("a.jpg", orientation=6, like_stored=0.98, like_upright=0.1),
                        picture("a.png", "L", field="mask", flat_share=1.0),
                        fields=(mask(0, 1),),
                    ),
                ),
            ),
        ),
        Example(
            title="Upright",
            evidence=(decoding(decoded(picture("a.jpg")), decoded(picture("b.jpg"))),),
        ),
    )


def _confidence(look: PictureLook, sample: SampleDecoding) -> float:
    """How surely this picture lies as it is stored, and should not."""
    if look.orientation == 1 or look.field is None or _fits_annotations(look, sample):
        return 0.0
    stored, upright = look.like_stored, look.like_upright
    if any(done.name == "exif_transpose" for done in look.steps):
        # A flip looks like half a turn, not like a quarter: then the turned image was made and not used.
        is_lost = look.orientation >= 5 and (stored or 0.0) >= SURELY_LIKE and (upright or 0.0) < UNLIKE
        return 0.8 if is_lost else 0.0
    if (
        stored is not None
        and upright is not None
        and abs(stored - upright) >= IS_LIKER
        and max(stored, upright) >= IS_LIKE
    ):
        return 0.9 if stored > upright else 0.0
    # Not to be told by the pixels: then by what was done, if all of that was seen.
    names = {done.name for done in look.steps}
    is_known = look.reader == "Pillow" and not names & (TURNS | {"getexif"})
    return 0.6 if is_known else 0.0


def _fits_annotations(look: PictureLook, sample: SampleDecoding) -> bool:
    """True if a mask file of this sample has the size of the picture as stored, and not that of the turned one."""
    masks = {view.field for view in sample.fields if view.is_mask}
    sizes = [other.size for other in sample.pictures if other is not look and other.field in masks]
    return look.orientation >= 5 and look.size[0] != look.size[1] and look.size in sizes


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _fix_for(reader: str) -> Fix | None:
    """A fix in the words of the library that read the file; None: the general one."""
    snippets = {
        "OpenCV": "import cv2\n\n\ndef read_upright(path):\n    return cv2.imread(path, cv2.IMREAD_COLOR)  # turns by itself",
        "torchvision": "from torchvision.io import read_image\n\n\n"
        "def read_upright(path):\n"
        "    return read_image(path, apply_exif_orientation=True)",
    }
    snippet = snippets.get(reader)
    general = IgnoredOrientation.fix
    return None if snippet is None else Fix(text=general.text, safety=general.safety, snippet=snippet)
