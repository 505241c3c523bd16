"""HR812 oversized-decode: far more pixels are decoded than are used."""

from __future__ import annotations

import statistics

from headrace.doctor.evidence.decoding import Decoding, PictureLook, SampleDecoding
from headrace.doctor.made_up.decoding import decoded, decoding, picture, step
from headrace.doctor.rule import Example, Finding, Fix, Rule

RATIO = 8.0
"""Decoded pixels for each one used, the median over samples: a JPEG can be decoded at half its width for less than half
the work, which begins to pay at a ratio of 4; 8 leaves room for sharp downscaling."""
FEWEST_PIXELS = 1_000_000
FEWEST_SAMPLES = 4
DOMINATES = 0.5
"""Share of the time of a sample that decoding and the resize after it must take."""
GAIN = 1.3
"""What decoding in part must save for a warning, measured on one file."""


class OversizedDecode(Rule):
    """HR812."""

    code = "HR812"
    name = "oversized-decode"
    summary = "Large images are decoded in full and then made small, and decoding takes most of the time."
    rationale = """
        A photograph of 12 megapixels that ends as 224 x 224 is decoded two hundred times larger than needed. JPEG can be
        decoded at a half, a quarter or an eighth of its size in a fraction of the time; or the files are made smaller
        once, before training. Workers and faster disks cost more than that.

        It is no fault if decoding is already done in part (`draft`, `IMREAD_REDUCED_COLOR_2`), if the images are small,
        or if something else takes the time. A random crop needs more than it shows: only what goes into the last resize
        counts.
        """
    experiment = """
        The sizes of decoded images before and after resizing are noted for a few samples, decoding is timed apart from
        the rest of each, and one large JPEG is decoded once in full and once in part. Nothing is changed.
        """
    needs = (Decoding,)
    fix = Fix(
        text="Decode JPEGs at the smallest size that is not below what is needed; or make the files smaller once, on disk.",
        safety="pixels change slightly, as with another resize filter",
        snippet="from PIL import Image\n\n\n"
        "def open_small(path, width, height):\n"
        "    image = Image.open(path)\n"
        '    image.draft("RGB", (2 * width, 2 * height))\n'
        "    return image.resize((width, height))",
    )
    references = ("Pillow, Image.draft", "OpenCV, ImreadModes")

    def judge(self, seen: Decoding) -> list[Finding]:
        """At most one finding."""
        large = [(sample, ratio) for sample in seen.samples if (ratio := _ratio(sample)) is not None]
        if len(large) < FEWEST_SAMPLES or 2 * len(large) < len(seen.samples):
            return []
        ratio = statistics.median(one for _, one in large)
        decode_s = sum(sample.decode_s + _resize_s(sample) for sample, _ in large)
        wall_s = sum(sample.wall_s for sample, _ in large)
        if ratio < RATIO or wall_s <= 0 or decode_s < DOMINATES * wall_s:
            return []
        gain = None if seen.oversize is None else seen.oversize.full_s / max(seen.oversize.reduced_s, 1e-6)
        is_jpeg = any(look.format == "JPEG" for sample, _ in large for look in sample.pictures)
        if is_jpeg and gain is not None and gain < GAIN:
            return []
        first, look, used = large[0][0], *_sizes(large[0][0])[0]
        share = min(100.0, 100 * decode_s / wall_s)
        measured = "" if gain is None else f"; decoding one of them in part takes {100 / gain:.0f} % of the time"
        return [
            Finding(
                message=f"images are decoded with about {ratio:.0f} times the pixels that are used (sample "
                f"{first.sample_id}: {look.size[0]} x {look.size[1]} for {used[0]} x {used[1]}), and decoding and shrinking "
                f"them takes {share:.0f} % of a sample's time{measured}",
                severity="warning",
                confidence=0.8,
                stage="decode",
                sample_ids=tuple(sample.sample_id for sample, _ in large),
                where=look.path,
                evidence={
                    "ratio": round(ratio, 1),
                    "decode_share": round(share / 100, 3),
                    "decode_ms": round(1e3 * decode_s / len(large), 2),
                    "gain": None if gain is None else round(gain, 2),
                },
                fix=_fix_for_opencv(look, used) if look.reader == "OpenCV" else None,
            )
        ]

    sick = (
        Example(
            title="Photographs of 12 megapixels for a network that wants 224 x 224",
            evidence=(
                decoding(
                    *(
                        decoded(
                            picture(
                                f"{name}.jpg",
                                "RGB",
                                step("load", before=(4000, 3000)),
                                step("resize", "BICUBIC", before=(4000, 3000), after=(224, 224), smooths=True),
                                format="JPEG",
                                size=(4000, 3000),
                            ),
                            decode_s=0.09,
                            wall_s=0.12,
                        )
                        for name in "abcd"
                    )
                ),
            ),
            message="images are decoded with about 239 times the pixels that are used (sample 0: 4000 x 3000 for 224 x "
            "224), and decoding and shrinking them takes 75 % of a sample's time",
            sample_ids=(0, 1, 2, 3),
        ),
        Example(
            title="The same through OpenCV",
            evidence=(
                decoding(
                    *(
                        decoded(
                            picture(
                                f"{name}.png",
                                "RGB",
                                step("load", before=(2000, 1000)),
                                step("resize", "INTER_AREA", before=(2000, 1000), after=(200, 100), smooths=True),
                                size=(2000, 1000),
                                reader="OpenCV",
                            ),
                            decode_s=0.05,
                            wall_s=0.05,
                        )
                        for name in "abcd"
                    )
                ),
            ),
            message="images are decoded with about 100 times the pixels that are used (sample 0: 2000 x 1000 for 200 x "
            "100), and decoding and shrinking them takes 100 % of a sample's time",
            sample_ids=(0, 1, 2, 3),
        ),
    )
    healthy = (
        Example(
            title="Decoded in part",
            evidence=(
                decoding(
                    *(
                        decoded(
                            picture(
                                f"{name}.jpg",
                                "RGB",
                                step("load", before=(500, 375)),
                                step("resize", "BICUBIC", before=(500, 375), after=(224, 224), smooths=True),
                                format="JPEG",
                                size=(4000, 3000),
                            ),
                            decode_s=0.09,
                            wall_s=0.12,
                        )
                        for name in "abcd"
                    )
                ),
            ),
        ),
        Example(
            title="Small images",
            evidence=(
                decoding(
                    *(
                        decoded(
                            picture(
                                f"{name}.jpg",
                                "RGB",
                                step("load", before=(500, 375)),
                                step("resize", before=(500, 375), after=(32, 32), smooths=True),
                                size=(500, 375),
                            ),
                            decode_s=0.09,
                            wall_s=0.12,
                        )
                        for name in "abcd"
                    )
                ),
            ),
        ),
    )


def _fix_for_opencv(look: PictureLook, used: tuple[int, int]) -> Fix:
    """The smallest of OpenCV's three reduced sizes that is not below what is used."""
    factors = [
        factor
        for factor in (8, 4, 2)
        if all(size / factor >= least for size, least in zip(look.size, used, strict=True))
    ]
    general = OversizedDecode.fix
    return Fix(
        text=general.text,
        safety=general.safety,
        snippet=f"import cv2\n\nimage = cv2.imread(path, cv2.IMREAD_REDUCED_COLOR_{factors[0] if factors else 2})",
    )


def _ratio(sample: SampleDecoding) -> float | None:
    """Decoded pixels for each used one, of the largest picture of a sample; None: nothing large is made small."""
    ratios = [_pixels(_decoded_size(look)) / max(1, _pixels(used)) for look, used in _sizes(sample)]
    return max(ratios, default=None)


def _resize_s(sample: SampleDecoding) -> float:
    """Seconds for making large pictures small: of a smaller picture it takes as much less."""
    return sum(step.wall_s for look in sample.pictures for step in look.steps if _pixels(step.before) >= FEWEST_PIXELS)


def _sizes(sample: SampleDecoding) -> list[tuple[PictureLook, tuple[int, int]]]:
    """(picture, size that its last resize gave) of large pictures; a crop before it counts as used."""
    found = []
    for look in sample.pictures:
        resizes = [step for step in look.steps if step.name in {"resize", "warpAffine"} and step.after != step.before]
        if not resizes or _pixels(_decoded_size(look)) < FEWEST_PIXELS:
            continue
        first, last = resizes[0], resizes[-1]
        # Of a part that was cut out first, as much was needed as its own resize took.
        scale = _pixels(_decoded_size(look)) / max(1, _pixels(first.before))
        width, height = last.after
        factor = scale**0.5
        found.append((look, (round(width * factor), round(height * factor))))
    return found


def _decoded_size(look: PictureLook) -> tuple[int, int]:
    """After `draft` it is smaller than the file says."""
    return next((step.before for step in look.steps if step.name == "load"), look.size)


def _pixels(size: tuple[int, int]) -> int:
    return size[0] * size[1]
