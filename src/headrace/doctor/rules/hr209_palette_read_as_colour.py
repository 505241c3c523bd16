"""HR209 palette-read-as-colour: a mask file holds indices into a palette, and its colours were delivered."""

from __future__ import annotations

from headrace.doctor.evidence.decoding import Decoding, FieldLook, PictureLook, SampleDecoding
from headrace.doctor.made_up.decoding import decoded, decoding, mask, picture, step
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, named, verb
from headrace.errors import SampleId

MOST_CLASSES = 256
VOC = ((0, 0, 0), (128, 0, 0), (0, 128, 0), (224, 224, 192))


class PaletteReadAsColour(Rule):
    """HR209."""

    code = "HR209"
    name = "palette-read-as-colour"
    summary = "Palette masks whose colours, or their brightness, are delivered in the place of class numbers."
    rationale = """
        Pascal VOC and many annotation tools store a mask as a palette image: pixel 15 means class 15, and the palette
        only says in which colour to show it. `convert("L")`, `convert("RGB")` and `cv2.imread` replace the numbers by
        the colours: class 15 becomes 147, or three numbers. The loss then fails with an index out of bounds, or the
        mask is cut to something that is accepted.

        It is no fault to convert palette images that are inputs (GIF, small PNG), to convert a mask and map its colours
        back to numbers, or if the palette is a grey ramp, so that colour and number are the same.
        """
    experiment = """
        The indices and the palette of the mask files of a few samples, read as they are stored after the samples came
        out, are held against the distinct values of the delivered masks. Nothing is changed.
        """
    needs = (Decoding,)
    fix = Fix(
        text="Do not convert the mask: as an array it is its indices.",
        safety="changes the values of the masks to the class numbers that are stored",
        snippet="import numpy as np\nfrom PIL import Image\n\n\n"
        "def read_mask(path):\n"
        "    return np.asarray(Image.open(path)).astype(np.int64)",
    )
    references = ("vision#622", "taming-transformers#8", "DIGITS#1676")

    def judge(self, seen: Decoding) -> list[Finding]:
        """One finding for each field."""
        groups: dict[str, list[tuple[SampleId, PictureLook, FieldLook]]] = {}
        for sample in seen.samples:
            for look, view in _coloured(sample):
                groups.setdefault(view.field, []).append((sample.sample_id, look, view))
        return [_finding(members, seen) for members in groups.values()]

    sick = (
        Example(
            title="A VOC mask converted to grey",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.png",
                            "P",
                            step("convert", "P -> L"),
                            values=(0, 1, 2, 255),
                            palette=VOC,
                            flat_share=1.0,
                            field="mask",
                        ),
                        fields=(mask(0, 38, 75, 220),),
                    ),
                ),
            ),
            message="1 of 1 samples looked at has palette colours in field 'mask' (sample 0): the file holds the class "
            "numbers 0, 1, 2, 255, delivered are 0, 38, 75, 220",
            sample_ids=(0,),
        ),
        Example(
            title="Colours of three channels",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.png", "P", step("convert", "P -> RGB"), values=(0, 1, 2, 255), palette=VOC, field="1"
                        ),
                        fields=(mask(0, 128, 192, 224, field="1", shape=(3, 48, 64)),),
                        sample_id="a/0",
                    ),
                ),
            ),
            message="1 of 1 samples looked at has palette colours in field '1' (sample a/0): the file holds the class "
            "numbers 0, 1, 2, 255, delivered are 0, 128, 192, 224",
            sample_ids=("a/0",),
        ),
    )
    healthy = (
        Example(
            title="Indices",
            evidence=(
                decoding(
                    decoded(
                        picture("0.png", "P", values=(0, 1, 2, 255), palette=VOC, field="mask"),
                        fields=(mask(0, 1, 2, 255),),
                    ),
                ),
            ),
        ),
        Example(
            title="Colours mapped back to numbers",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "0.png", "P", step("convert", "P -> RGB"), values=(0, 1, 2, 255), palette=VOC, field="mask"
                        ),
                        fields=(mask(0, 1, 2, 21),),
                    ),
                ),
            ),
        ),
        Example(
            title="A GIF as input",
            evidence=(
                decoding(
                    decoded(
                        picture("0.gif", "P", step("convert", "P -> RGB"), values=(0, 1, 2, 255), palette=VOC),
                        fields=(
                            FieldLook(field="image", dtype="uint8", shape=(3, 48, 64), is_mask=False, values=None),
                        ),
                    ),
                ),
            ),
        ),
    )


def _coloured(sample: SampleDecoding) -> list[tuple[PictureLook, FieldLook]]:
    fields = {view.field: view for view in sample.fields if view.is_mask}
    pairs = [(look, fields[look.field]) for look in sample.pictures if look.field in fields and look.palette]
    return [(look, view) for look, view in pairs if _is_colour(look, view)]


def _is_colour(look: PictureLook, view: FieldLook) -> bool:
    """True if the delivered values are colours of the palette, or their brightness, and not its indices."""
    delivered, indices = set(view.values or ()), set(map(float, look.values or ()))
    if not delivered or delivered <= indices or not look.values:
        return False
    scales = (1.0, 255.0) if view.dtype.startswith("float") and max(delivered) <= 1 else (1.0,)
    whole = [{float(round(value * scale)) for value in delivered} for scale in scales]
    candidates = [value for value in whole if not value <= indices]
    channels = {float(part) for colour in look.palette for part in colour}
    # Pillow's and OpenCV's formula (ITU-R 601-2); the last digit is rounded in one way or the other.
    grey = {float(round(0.299 * red + 0.587 * green + 0.114 * blue)) for red, green, blue in look.palette}
    near_grey = grey | {value + 1 for value in grey} | {value - 1 for value in grey}
    return any(len(value) > 1 and (value <= channels or value <= near_grey) and max(value) > 1 for value in candidates)


def _finding(members: list[tuple[SampleId, PictureLook, FieldLook]], seen: Decoding) -> Finding:
    (_, look, view), ids = members[0], tuple(dict.fromkeys(sample_id for sample_id, _, _ in members))
    has = verb(len(ids), "has", "have")
    delivered = [f"{value:g}" for value in view.values or ()]
    return Finding(
        message=f"{len(ids)} of {len(seen.samples)} samples looked at {has} palette colours in field {view.field!r} "
        f"{named(ids)}: the file holds the class numbers {listing(look.values or ())}, delivered are {listing(delivered)}",
        confidence=0.95,
        stage="decode",
        sample_ids=ids,
        where=look.path,
        evidence={
            "indices": list(look.values or ())[:64],
            "delivered": list(view.values or ())[:64],
            "conversions": [step.detail for step in look.steps if step.name == "convert"],
            "reader": look.reader,
        },
    )
