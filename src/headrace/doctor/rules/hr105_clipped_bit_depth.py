"""HR105 clipped-bit-depth: files with more than 8 bits lose their upper part on the way to 8."""

from __future__ import annotations

from headrace.doctor.evidence.decoding import Decoding, PictureLook
from headrace.doctor.made_up.decoding import decoded, decoding, picture, step
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, verb
from headrace.errors import SampleId

FEWEST = 0.01
"""Share of values above 255 below which nothing is said: a few hot pixels of a sensor."""
MANY = 0.1
FOLLOWS = ((0.98, 0.05), (0.9, 0.3))
"""(correlation from which on the field is taken for a linear function of the changed values, what the healthy explanation
must fall short of that): the less sure the one, the more the other."""
NARROW = frozenset({"L", "LA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "P", "1"})


class ClippedBitDepth(Rule):
    """HR105."""

    code = "HR105"
    name = "clipped-bit-depth"
    summary = "Files of 16 bits whose values above 255 are clipped or wrapped around instead of scaled."
    rationale = """
        Pillow's `convert("L")` and `convert("RGB")` clip a 16-bit image at 255, and `astype(np.uint8)` keeps the lower
        eight bits: X-rays, depth maps, microscope and satellite images become white, or a pattern of stripes. Nothing
        fails, and the network learns from what is left.

        It is no fault to scale (by 257, by 65535, by the highest value, by `>> 8`), to cut out a window of values on
        purpose and scale that, or to read 16-bit files whose values are all below 256.
        """
    experiment = """
        The files of a few samples are read as they are stored, after the samples came out; conversions that were seen
        and the distribution of the delivered values tell what became of the values above 255. Nothing is changed.
        """
    needs = (Decoding,)
    fix = Fix(
        text="Scale before the values become 8 bits, or keep them: a float tensor has room for all of them.",
        safety="changes the pixels of these files, and with them mean and spread: adapt Normalize",
        snippet="import numpy as np\nfrom PIL import Image\n\n\n"
        "def read_16_bits(path):\n"
        "    return np.asarray(Image.open(path)).astype(np.float32) / 65535",
    )
    references = ("pytorch#20524", "vision#2218", "vision#8188", "Pillow#2574", "Pillow#5991")

    def judge(self, seen: Decoding) -> list[Finding]:
        """One finding for what is clipped, one for what wraps around."""
        findings = []
        for how in ("clipped at 255", "wrapped around at 256"):
            found = [
                (sample.sample_id, look) for sample in seen.samples for look in sample.pictures if _fault(look) == how
            ]
            if found:
                findings.append(_finding(how, found, seen))
        return findings

    sick = (
        Example(
            title="An X-ray of 16 bits, converted",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "x.png",
                            "I;16",
                            step("convert", "I;16 -> RGB", highest=61_440.0),
                            maximum=61_440.0,
                            above_8_bit=0.94,
                            like_clipped=1.0,
                            like_wrapped=0.1,
                            like_scaled=0.4,
                        )
                    ),
                    decoded(picture("y.png", "I;16", maximum=200.0)),
                ),
            ),
            message="1 of 2 samples looked at loses values: the file holds 16 bits up to 61440, and 94 % of its pixels are "
            "clipped at 255 (sample 0)",
            sample_ids=(0,),
        ),
        Example(
            title="A depth map read unchanged, then made uint8",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "d.png",
                            "I;16",
                            reader="OpenCV",
                            maximum=9_000.0,
                            above_8_bit=0.8,
                            like_clipped=0.2,
                            like_wrapped=1.0,
                            like_scaled=0.1,
                        )
                    ),
                ),
            ),
            message="1 of 1 samples looked at loses values: the file holds 16 bits up to 9000, and 80 % of its pixels are "
            "wrapped around at 256 (sample 0)",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(
            title="Scaled, then converted",
            evidence=(
                decoding(
                    decoded(
                        picture(
                            "x.png",
                            "I;16",
                            step("convert", "I -> L", highest=240.0),
                            maximum=61_440.0,
                            above_8_bit=0.94,
                            like_clipped=0.4,
                            like_wrapped=0.1,
                            like_scaled=0.999,
                        )
                    )
                ),
            ),
        ),
        Example(
            title="16-bit files whose values need 8",
            evidence=(decoding(decoded(picture("x.png", "I;16", maximum=255.0))),),
        ),
    )


def _fault(look: PictureLook) -> str | None:
    """What became of the values above 255; None: they were scaled, or it cannot be told."""
    if look.above_8_bit is None or look.above_8_bit < FEWEST:
        return None
    for done in look.steps:
        is_narrowing = done.name == "convert" and done.detail.rpartition(" ")[2] in NARROW
        if is_narrowing and done.highest is not None and done.highest > 255:
            return "clipped at 255"
    scaled = look.like_scaled or 0.0
    for how, like in (("clipped at 255", look.like_clipped), ("wrapped around at 256", look.like_wrapped)):
        if like is not None and any(like >= least and scaled <= like - apart for least, apart in FOLLOWS):
            return how
    return None


def _finding(how: str, found: list[tuple[SampleId, PictureLook]], seen: Decoding) -> Finding:
    ids = tuple(dict.fromkeys(sample_id for sample_id, _ in found))
    first = max((look for _, look in found), key=lambda look: look.above_8_bit or 0.0)
    share = first.above_8_bit or 0.0
    loses = verb(len(ids), "loses", "lose")
    is_seen = any(step.name == "convert" and step.highest for step in first.steps)
    return Finding(
        message=f"{len(ids)} of {len(seen.samples)} samples looked at {loses} values: the file holds 16 bits up to "
        f"{first.maximum:.0f}, and {100 * share:.0f} % of its pixels are {how} {named(ids)}",
        severity="error" if share >= MANY else "warning",
        confidence=0.95 if is_seen else 0.8,
        stage="decode",
        sample_ids=ids,
        where=first.path,
        evidence={
            "mode": first.mode,
            "highest_stored": first.maximum,
            "share_above_255": round(share, 3),
            "conversions": [step.detail for step in first.steps if step.name == "convert"],
            "field": first.field,
        },
    )
