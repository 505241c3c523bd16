"""HR103 swallowed-read-error: a sample could not be read, and something else was delivered in its place."""

from __future__ import annotations

from headrace.doctor.evidence.decoding import Decoding, Swallowed
from headrace.doctor.made_up.decoding import decoding, swallowed
from headrace.doctor.questions.samples import grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, named, quoted, verb

AMBIGUOUS = frozenset({"AttributeError", "IndexError", "KeyError", "LookupError", "TypeError"})
"""Exceptions by which Python programs also ask questions: is it in the cache, has it this attribute?"""


class SwallowedReadError(Rule):
    """HR103."""

    code = "HR103"
    name = "swallowed-read-error"
    summary = (
        "Samples that could not be read and were replaced without a word: by another sample, zeros, or half an image."
    )
    rationale = """
        `except Exception: return self[random index]` keeps a run alive, and hides that a part of the data is gone: the
        samples that stand in are seen more often, ids and labels no longer belong together, and nobody mends the
        files. With zeros or a grey picture in the place of an image the network learns that zeros have a class. The
        same happens without an exception: `cv2.imread` returns None, and `ImageFile.LOAD_TRUNCATED_IMAGES = True`
        fills the lower part of a cut-off image with grey.

        It is no fault to catch errors that are questions (a cache that has no entry yet, an optional library, a
        missing annotation of a picture without objects), to try a second decoder or to try again on the same file, or
        to say by a field of the sample that it is not valid.
        """
    experiment = """
        While a chosen sample is prepared, it is noted which files decoders refuse, which exceptions the code keeps
        inside, and which other rows and files are asked for after that; then the sample is held against the others.
        Images that were decoded while truncated loading was on are looked at apart. Up to 48 samples are prepared a
        second time for it. Nothing is changed.
        """
    needs = (Decoding,)
    fix = Fix(
        text="Let the error come out, and let the loader decide: it leaves such samples out, counts them, and lists them "
        "by id. Then mend the files or take their rows out of the index.",
        safety="changes what is delivered for the samples that cannot be read, and only for those",
        snippet="import headrace as hr\n\n"
        "policy = hr.Skip(max_rate=0.001)\n"
        "loader = hr.DataLoader(dataset, batch_size=64, on_error=policy)",
    )
    references = ("Qwen3-VL#1234", "gigagan-pytorch#27", "examples#835", "maskrcnn-benchmark#195")

    def judge(self, seen: Decoding) -> list[Finding]:
        """One finding for what was cut off, and one for each place and kind of error."""
        first_of_sample = {one.index: one for one in reversed(seen.swallowed) if _confidence(one) >= 0.5}
        cut_off = {sample_id for sample_id, _ in seen.cut_off}
        told = [one for _, one in sorted(first_of_sample.items()) if one.sample_id not in cut_off]
        groups = grouped(((one.error_type, one.at or "", one.flagged_by), one) for one in told)
        findings = [_finding(members, seen) for members in groups.values()]
        return [_cut_off(seen), *findings] if seen.cut_off else findings

    sick = (
        Example(
            title="Another row is returned in the place of one that cannot be decoded",
            evidence=(
                decoding(
                    swallowed=(
                        swallowed(3, "UnidentifiedImageError", "cannot identify image file", answered_row=17),
                        swallowed(9, "UnidentifiedImageError", "cannot identify image file", answered_row=2),
                    ),
                    num_examined=64,
                ),
            ),
            message="2 of 64 samples were delivered although their data could not be read: row 17 in place of row 3 "
            "(first sample 3): UnidentifiedImageError: cannot identify image file",
            sample_ids=(3, 9),
        ),
        Example(
            title="OpenCV finds nothing, zeros are delivered",
            evidence=(
                decoding(
                    swallowed=(swallowed(5, "", "cv2.imread returned None", at=None, is_placeholder=True),),
                    num_examined=20,
                    num_samples=800,
                ),
            ),
            message="1 of 20 examined samples was delivered although its data could not be read: a constant instead "
            "(sample 5): cv2.imread returned None",
            sample_ids=(5,),
        ),
        Example(
            title="Truncated loading is on",
            evidence=(decoding(cut_off=(("7.jpg", "photos/7.jpg"),), num_examined=30),),
            message="1 of 30 samples holds an image that is cut off and was filled up with grey, because "
            "ImageFile.LOAD_TRUNCATED_IMAGES is on (sample 7.jpg)",
            sample_ids=("7.jpg",),
        ),
    )
    healthy = (
        Example(title="Nothing stayed inside", evidence=(decoding(num_examined=64),)),
        Example(
            title="A second decoder reads what the first refused, a cache misses, an annotation is not there",
            evidence=(
                decoding(
                    swallowed=(
                        swallowed(1, recovered=True),
                        swallowed(2, "KeyError", "2", by_decoder=False),
                        swallowed(3, "FileNotFoundError", "3.txt", by_decoder=False, is_missing=True),
                    ),
                    num_examined=64,
                ),
            ),
        ),
    )


def _confidence(one: Swallowed) -> float:
    """How surely the data of this sample are not its own."""
    if one.recovered:
        return 0.0
    is_replaced = one.answered_row is not None or one.answered_path is not None or one.is_placeholder
    if one.is_missing:
        return (
            0.9
            if one.answered_row is not None or one.is_placeholder or (is_replaced and one.equal_to is not None)
            else 0.0
        )
    if one.error_type in AMBIGUOUS and not one.by_decoder:
        return 0.75 if one.answered_row is not None and one.equal_to is not None else 0.0
    if one.by_decoder:
        return 0.95 if is_replaced or one.equal_to is not None else 0.7
    return 0.9 if is_replaced or (one.equal_to is not None and one.path is not None) else 0.0


def _finding(members: list[Swallowed], seen: Decoding) -> Finding:
    first, number = members[0], len(members)
    error = quoted(first.error_type, first.error_message)
    is_told = first.flagged_by is not None
    instead = f", as field {first.flagged_by!r} says" if is_told else _instead(first)
    return Finding(
        message=f"{_share(number, seen)} {verb(number, 'was', 'were')} delivered although {verb(number, 'its', 'their')} data "
        f"could not be read{instead} {named([one.sample_id for one in members])}: {error}",
        severity="info" if is_told else ("error" if _confidence(first) >= 0.9 else "warning"),
        confidence=_confidence(first),
        stage="decode" if first.by_decoder else "read",
        sample_ids=tuple(one.sample_id for one in members),
        where=first.at or first.path,
        evidence={
            "error_type": first.error_type or None,
            "error_message": first.error_message,
            "kept_inside_at": first.at,
            "files": [one.path for one in members[:5]],
            "answered_rows": {str(one.sample_id): one.answered_row for one in members if one.answered_row is not None},
            "answered_files": {
                str(one.sample_id): one.answered_path for one in members if one.answered_path is not None
            },
        },
    )


def _instead(first: Swallowed) -> str:
    """What was delivered instead, told of the first."""
    if first.answered_row is not None:
        return f": row {first.answered_row} in place of row {first.index}"
    if first.answered_path is not None:
        return f": {first.answered_path} was read instead"
    if first.is_placeholder:
        return ": a constant instead"
    if first.equal_to is not None:
        return f": the content of sample {first.equal_to} instead"
    return ""


def _cut_off(seen: Decoding) -> Finding:
    ids = list(dict.fromkeys(sample_id for sample_id, _ in seen.cut_off))
    paths = [path for _, path in seen.cut_off]
    holds = verb(len(ids), "holds an image that is cut off and was", "hold images that are cut off and were")
    return Finding(
        message=f"{_share(len(ids), seen)} {holds} filled up with grey, because ImageFile.LOAD_TRUNCATED_IMAGES is on "
        f"{named(ids)}",
        stage="decode",
        sample_ids=tuple(ids),
        where=paths[0],
        evidence={"files": paths[:20]},
        fix=Fix(
            text=f"Fetch or write again: {listing(paths)}. Switch truncated loading off, so that such files are noticed.",
            safety="files that are whole are decoded as before",
            snippet="from PIL import ImageFile\n\nImageFile.LOAD_TRUNCATED_IMAGES = False",
        ),
    )


def _share(number: int, seen: Decoding) -> str:
    kind = "samples" if seen.num_examined == seen.num_samples else "examined samples"
    return f"{number:,} of {seen.num_examined:,} {kind}"
