"""HR301 shape-mismatch: samples whose shapes do not stack, named before they meet in a batch."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from headrace.doctor.evidence import CollateTrial, LoaderFacts, SampleRead, SampleReads
from headrace.doctor.made_up import collated, file, image, loader, ok, reads, values
from headrace.doctor.questions.samples import blame, channel_splits, grouped, is_bare, joins_samples
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, shape_text, share, verb

Shape = tuple[int, ...]

LONGEST_TABLE = 5
"""Shapes that the evidence lists, the most common first; more are only counted."""

TO_ONE_SIZE = Fix(
    text="Bring every sample to one size before it is collated; or pad to the largest of the batch and keep a mask.",
    safety="resizing and cropping change pixels, padding does not; boxes and masks must follow",
    snippet="from torchvision.transforms import v2\n\ntransform = v2.Compose([v2.Resize(256), v2.CenterCrop(224)])",
)
TO_THREE_CHANNELS = Fix(
    text="Decide what a one-channel sample is: convert it where it is read, or refuse it.",
    safety="repeats the grey channel; the other samples stay as they are",
    snippet="image = image.expand(3, -1, -1)  # [1, H, W] -> [3, H, W]",
)
TO_ONE_AXIS_ORDER = Fix(
    text="Bring all samples to one order of axes, channels first.",
    safety="same values in another order",
    snippet="image = image.permute(2, 0, 1)  # [H, W, C] -> [C, H, W]",
)
TO_LISTS = Fix(
    text="Keep a variable number of rows as a list per batch, or pad to the longest and keep a mask.",
    safety="same values; the batch holds a list or a mask",
    snippet="def collate(samples):\n    images, targets = zip(*samples)\n    return torch.stack(images), list(targets)\n\n\n"
    "loader = DataLoader(dataset, batch_size=64, collate_fn=collate)",
)


TO_ONE_WIDTH = Fix(
    text="Look at these samples: they lack a part of what the others have, or have more. Prepare them in the same way.",
    safety="changes the named samples only",
    snippet="for index in odd_ones:\n    print(index, dataset[index])",
)


class ShapeMismatch(Rule):
    """HR301."""

    code = "HR301"
    name = "shape-mismatch"
    summary = "Samples whose shape differs from the others', so that the loader's collate cannot stack them."
    rationale = """
        Each sample is fine alone, and the batch fails: "stack expects each tensor to be equal size". The message gives
        two shapes and no sample, and it comes from whichever batch the shuffle put the odd one into; with batch size
        1, it never comes. Usual causes: photographs of several sizes with a resize that keeps the aspect ratio,
        portrait beside landscape, one grey image, one array with its axes in another order.

        It is no fault if the loader never joins samples (batch size 1, no batching), or if a collate function of your
        own (padding, lists for detection) was seen to join them. Samples whose channels follow the mode of their
        image file are HR106, one-dimensional fields of several lengths are HR302.
        """
    experiment = """
        The shapes of the chosen samples are compared, each prepared alone; then the same samples are joined by the
        loader's own collate function in one process. Nothing is changed.
        """
    needs = (SampleReads, CollateTrial, LoaderFacts)
    fix = TO_ONE_SIZE
    references = ("Pytorch-UNet#285", "kohya-colab#185", "TR-MISR#3", "MuSc#45")

    def judge(self, seen: SampleReads, trial: CollateTrial, facts: LoaderFacts) -> list[Finding]:
        """One finding for each field whose shapes differ."""
        if not joins_samples(facts):
            return []
        explained = {split.field: {read.index for read in split.odd} for split in channel_splits(seen)}
        by_field = grouped(
            (view.field, (read, view.shape))
            for read in seen.ok
            for view in read.fields
            if view.kind in {"tensor", "array", "number"}
            and view.shape is not None
            and read.index not in explained.get(view.field, ())
        )
        findings: list[Finding] = []
        for field, cases in by_field.items():
            shapes = collections.Counter(shape for _, shape in cases)
            if len(shapes) == 1 or all(len(shape) == 1 for shape in shapes):
                continue
            usual = shapes.most_common(1)[0][0]
            sure = blame(trial, [read.sample_id for read, shape in cases if shape != usual])
            if sure < 0.5:
                findings += _of_one_axis(field, cases, trial, seen)
            else:
                bare = is_bare(facts)
                findings.append(
                    _finding(field, cases, confidence=sure, seen=seen, collate=trial.collate, is_bare_data_set=bare)
                )
        return findings

    sick = (
        Example(
            title="Four records: three in colour, one with a single channel",
            evidence=(
                reads(ok(image(3, 16, 16)), ok(image(3, 16, 16)), ok(image(1, 16, 16)), ok(image(3, 16, 16))),
                collated(ids=(0, 1, 2, 3), error_type="RuntimeError", odd_ids=(2,)),
                loader(),
            ),
            message="1 of 4 samples does not stack: field 'image' of sample 2 is [1, 16, 16], the usual shape is "
            "[3, 16, 16] (one channel: probably a grey image)",
            sample_ids=(2,),
        ),
        Example(
            title="Portrait beside landscape",
            evidence=(
                reads(
                    ok(values("0", 3, 12, 10)), ok(values("0", 3, 10, 12)), ok(values("0", 3, 10, 12)), num_samples=80
                ),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(1, 2)),
                loader(num_samples=80, batch_size=8, num_batches=10),
            ),
            message="1 of 3 examined samples does not stack: field '0' of sample 0 is [3, 12, 10], the usual shape is "
            "[3, 10, 12] (height and width are swapped: portrait beside landscape)",
            sample_ids=(0,),
        ),
        Example(
            title="Every photograph has its own size, though the few that were joined happened to fit",
            evidence=(
                reads(
                    ok(image(3, 20, 30)),
                    ok(image(3, 20, 30)),
                    ok(image(3, 40, 30)),
                    ok(image(3, 25, 31)),
                    num_samples=80,
                ),
                collated(ids=(0, 1)),
                loader(num_samples=80, batch_size=2, num_batches=40),
            ),
            message="4 examined samples have 3 shapes of field 'image' and do not stack: [3, 20, 30] in sample 0, "
            "[3, 40, 30] in sample 2, [3, 25, 31] in sample 3 (several heights or widths)",
            sample_ids=(2, 3),
        ),
        Example(
            title="A number of boxes that differs from sample to sample, under torch's default collate",
            evidence=(
                reads(ok(values("boxes", 2, 4)), ok(values("boxes", 2, 4)), ok(values("boxes", 5, 4))),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(2,)),
                loader(num_samples=3),
            ),
            message="1 of 3 samples does not stack: field 'boxes' of sample 2 is [5, 4], the usual shape is [2, 4] "
            "(the number of rows differs)",
            sample_ids=(2,),
        ),
        Example(
            title="Graphs of several sizes, one of which lacks a column",
            evidence=(
                reads(
                    ok(values("x", 5, 16)),
                    ok(values("x", 7, 16)),
                    ok(values("x", 6, 15)),
                    ok(values("x", 9, 16)),
                ),
                collated(ids=(0, 1, 2, 3), own="merge (train.py:9)", error_type="RuntimeError", odd_ids=(2,)),
                loader(collate="merge (train.py:9)"),
            ),
            message="1 of 4 samples does not join with the others: field 'x' of sample 2 is [6, 15], and axis 1 of the "
            "others is 16",
            sample_ids=(2,),
        ),
    )
    healthy = (
        Example(
            title="One shape",
            evidence=(reads(ok(image(3, 16, 16)), ok(image(3, 16, 16))), collated(image(2, 3, 16, 16)), loader()),
        ),
        Example(
            title="Several sizes in batches of one",
            evidence=(
                reads(ok(image(3, 20, 30)), ok(image(3, 30, 20))),
                collated(error_type="RuntimeError", odd_ids=(1,)),
                loader(batch_size=1, num_batches=4),
            ),
        ),
        Example(
            title="Several sizes that the user's own collate function pads",
            evidence=(
                reads(ok(image(3, 20, 30)), ok(image(3, 30, 20))),
                collated(image(2, 3, 30, 30), own="pad_to_largest (train.py:20)"),
                loader(collate="pad_to_largest (train.py:20)"),
            ),
        ),
        Example(
            title="Token sequences of several lengths: that is HR302",
            evidence=(
                reads(ok(values("ids", 5, dtype="int64")), ok(values("ids", 7, dtype="int64"))),
                collated(error_type="RuntimeError", odd_ids=(1,)),
                loader(),
            ),
        ),
        Example(
            title="One grey file among colour files: that is HR106",
            evidence=(
                reads(
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                    ok(image(3, 16, 16), images=(file("RGB"),)),
                    ok(image(1, 16, 16), images=(file("L"),)),
                ),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(2,)),
                loader(),
            ),
        ),
    )


def _of_one_axis(
    field: str, cases: list[tuple[SampleRead, Shape]], trial: CollateTrial, seen: SampleReads
) -> Iterator[Finding]:
    """Where a collate function of the user's own joins several lengths, as it does graphs, and fails for another axis."""
    rank = len(cases[0][1])
    if trial.is_default or trial.succeeded or rank < 2 or any(len(shape) != rank for _, shape in cases):
        return
    for axis in range(rank):
        usual, number = collections.Counter(shape[axis] for _, shape in cases).most_common(1)[0]
        odd = [(read, shape) for read, shape in cases if shape[axis] != usual]
        sure = blame(trial, [read.sample_id for read, _ in odd])
        if 4 * number < 3 * len(cases) or sure < 0.5:
            continue
        first, shape = odd[0]
        yield Finding(
            message=f"{share(len(odd), seen)} {verb(len(odd), 'does', 'do')} not join with the others: field {field!r} of "
            f"sample {first.sample_id} is {shape_text(shape)}, and axis {axis} of the others is {usual}",
            confidence=sure,
            stage="collate",
            sample_ids=tuple(read.sample_id for read, _ in odd),
            where=first.path,
            evidence={"field": field, "axis": axis, "usual": usual, "collate": trial.collate},
            fix=TO_ONE_WIDTH,
        )


def _finding(
    field: str,
    cases: list[tuple[SampleRead, Shape]],
    *,
    confidence: float,
    seen: SampleReads,
    collate: str,
    is_bare_data_set: bool,
) -> Finding:
    by_shape = grouped((shape, read.sample_id) for read, shape in cases)
    ranked = sorted(by_shape.items(), key=lambda item: -len(item[1]))
    usual, usual_ids = ranked[0]
    odd = [(read, shape) for read, shape in cases if shape != usual]
    first, first_shape = odd[0]
    hint, fix = _hint(first_shape, usual)
    if len(usual_ids) > len(cases) / 2:
        message = (
            f"{share(len(odd), seen)} {verb(len(odd), 'does', 'do')} not stack: field {field!r} of sample "
            f"{first.sample_id} is {shape_text(first_shape)}, the usual shape is {shape_text(usual)}"
        )
    else:
        shown = ", ".join(f"{shape_text(shape)} in sample {ids[0]}" for shape, ids in ranked[:3])
        message = f"{len(cases):,} examined samples have {count(len(ranked), 'shape')} of field {field!r} and do not stack: {shown}"
    return Finding(
        message=f"{message} ({hint})",
        # How a bare data set will be joined is not known; that torch's default rules refuse it is.
        severity="warning" if is_bare_data_set else "error",
        confidence=min(confidence, 0.7) if is_bare_data_set else confidence,
        stage="collate",
        sample_ids=tuple(read.sample_id for read, _ in odd),
        where=first.path,
        evidence={
            "field": field,
            "collate": collate,
            "shapes": {shape_text(shape): len(ids) for shape, ids in ranked[:LONGEST_TABLE]},
            "num_shapes": len(ranked),
        },
        fix=fix,
    )


def _hint(odd: Shape, usual: Shape) -> tuple[str, Fix]:
    """What the difference looks like, and what mends it."""
    if len(odd) == len(usual) == 2 and odd[1] == usual[1]:
        return "the number of rows differs", TO_LISTS
    if len(odd) == len(usual) == 3:
        if odd[1:] == usual[1:] and 1 in {odd[0], usual[0]}:
            return "one channel: probably a grey image", TO_THREE_CHANNELS
        if (odd[0], odd[2], odd[1]) == usual or (odd[1], odd[0], odd[2]) == usual:
            return "height and width are swapped: portrait beside landscape", TO_ONE_SIZE
        if sorted(odd) == sorted(usual):
            return "the axes are in another order", TO_ONE_AXIS_ORDER
    if {len(odd), len(usual)} == {2, 3} and min(odd, usual, key=len) in {
        max(odd, usual, key=len)[1:],
        max(odd, usual, key=len)[:2],
    }:
        return "no axis for channels: probably a grey image", TO_THREE_CHANNELS
    return "several heights or widths" if len(odd) == len(usual) == 3 else "several shapes", TO_ONE_SIZE
