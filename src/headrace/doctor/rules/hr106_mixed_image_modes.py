"""HR106 mixed-image-modes: image files of several modes reach the batch with different numbers of channels."""

from __future__ import annotations

from headrace.doctor.evidence import CollateTrial, SampleReads
from headrace.doctor.made_up import collated, file, image, ok, reads, values
from headrace.doctor.questions.samples import ChannelSplit, blame, channel_splits
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, shape_text, share, verb

TO_RGB = Fix(
    text="Convert every image to one mode where it is opened; or refuse the odd ones, if a grey image has no business here.",
    safety="changes the pixels of the odd images only",
    snippet='image = Image.open(path).convert("RGB")  # of Pillow',
)


class MixedImageModes(Rule):
    """HR106."""

    code = "HR106"
    name = "mixed-image-modes"
    summary = (
        "Image files of several modes (grey, colour, alpha, palette) whose samples differ in channels accordingly."
    )
    rationale = """
        One grey, transparent or CMYK file among colour photographs gives a sample with another number of channels.
        Collate or the first convolution fails on the batch that happens to hold it, with two shapes and no file name.
        With a palette image it is worse: the number of channels may fit, and the values are indices.

        It is no fault if the files differ and the samples do not, because the data set converts them
        (`convert("RGB")`), nor if a collate function of your own was seen to join them. Differences of height and
        width are HR301; a sample that is named here is not named there again.
        """
    experiment = """
        A listener at Pillow's door notes the mode of each image file while a chosen sample is prepared; the modes are
        then held against the shapes that came out. The files and the samples are not changed.
        """
    needs = (SampleReads, CollateTrial)
    fix = TO_RGB
    references = ("torchtune#1678", "anomalib#1862", "pytorch-retinanet#186", "deepdream#25")

    def judge(self, seen: SampleReads, trial: CollateTrial) -> list[Finding]:
        """One finding for each field whose channels follow the modes."""
        splits = [(split, blame(trial, [read.sample_id for read in split.odd])) for split in channel_splits(seen)]
        return [_finding(split, sure, seen) for split, sure in splits if sure >= 0.5]

    sick = (
        Example(
            title="One grey image among colour images",
            evidence=(
                reads(
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                    ok(image(1, 16, 16), images=(file("L"),), sample_id="grey/2.png"),
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                ),
                collated(ids=(0, 1, "grey/2.png", 3), error_type="RuntimeError", odd_ids=("grey/2.png",)),
            ),
            message="1 of 4 samples has another number of channels in field 'image', because the file's mode is L and "
            "not RGB (sample grey/2.png, shape [1, 16, 16])",
            sample_ids=("grey/2.png",),
        ),
        Example(
            title="Transparent and grey files as arrays with the channels last, in images of several sizes",
            evidence=(
                reads(
                    ok(values("0", 20, 16, 3), images=(file("RGB", 16, 20),)),
                    ok(values("0", 24, 16, 3), images=(file("RGB", 16, 24),)),
                    ok(values("0", 16, 16, 4), images=(file("RGBA"),)),
                    ok(values("0", 16, 16), images=(file("L"),)),
                    num_samples=50_000,
                ),
                collated(ids=(0, 1, 2, 3), error_type="RuntimeError"),
            ),
            message="2 of 4 examined samples have another number of channels in field '0', because the file's mode is "
            "RGBA or L and not RGB (first sample 2, shape [16, 16, 4])",
            sample_ids=(2, 3),
        ),
    )
    healthy = (
        Example(
            title="Files of three modes, all converted",
            evidence=(
                reads(
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                    ok(image(3, 16, 16), images=(file("L"),)),
                    ok(image(3, 16, 16), images=(file("RGBA"),)),
                ),
                collated(ids=(0, 1, 2)),
            ),
        ),
        Example(
            title="A colour image and its palette mask in each sample",
            evidence=(
                reads(
                    ok(image(3, 16, 16), values("mask", 16, 16, dtype="uint8"), images=(file("RGB"), file("P"))),
                    ok(image(3, 16, 16), values("mask", 16, 16, dtype="uint8"), images=(file("RGB"), file("L"))),
                ),
                collated(),
            ),
        ),
        Example(
            title="A collate function of the user's own that joins grey and colour",
            evidence=(
                reads(
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                    ok(image(1, 16, 16), images=(file("L"),)),
                ),
                collated(image(2, 3, 16, 16), own="to_colour_batch"),
            ),
        ),
    )


def _finding(split: ChannelSplit, confidence: float, seen: SampleReads) -> Finding:
    odd_rows = {read.index for read in split.odd}
    odd_modes = [mode for mode, reads_ in split.modes.items() if reads_[0].index in odd_rows]
    usual_modes = [mode for mode in split.modes if mode not in odd_modes]
    first, ids = split.odd[0], tuple(read.sample_id for read in split.odd)
    shape = next(view.shape for view in first.fields if view.field == split.field) or ()
    has = verb(len(split.odd), "has", "have")
    return Finding(
        message=f"{share(len(split.odd), seen)} {has} another number of channels in field {split.field!r}, because the "
        f"file's mode is {' or '.join(odd_modes)} and not {' or '.join(usual_modes)} "
        f"({named(ids)[1:-1]}, shape {shape_text(shape)})",
        confidence=confidence,
        stage="read",
        sample_ids=ids,
        where=first.images[0].path or first.path,
        evidence={"modes": {mode: len(reads_) for mode, reads_ in split.modes.items()}},
        # If the usual mode is not colour, only the user knows which one is meant.
        fix=TO_RGB if usual_modes == ["RGB"] else _convert_to(usual_modes[0]),
    )


def _convert_to(mode: str) -> Fix:
    return Fix(
        text=TO_RGB.text, safety=TO_RGB.safety, snippet=f'image = Image.open(path).convert("{mode}")  # of Pillow'
    )
