"""HR304 target-out-of-range: class ids that no class has."""

from __future__ import annotations

import dataclasses

from headrace.contract.view import ValueView
from headrace.doctor.evidence import SampleRead, SampleReads
from headrace.doctor.made_up import image, label, ok, reads, values
from headrace.doctor.questions.samples import grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import share, verb

IGNORED = (-100, -1)
"""Values that usually mean "no class here" in targets with several values: the default of CrossEntropyLoss, and a habit."""
IGNORED_IN_MASKS = 255
"""The same for masks: the value of Pascal VOC and Cityscapes."""

CLASS_WORDS = ("label", "class", "category")
"""A field with such a word in its name holds class ids, even where the number of classes is not known."""

SNIPPET = "# Only if the value means that there is no class:\nloss_fn = torch.nn.CrossEntropyLoss(ignore_index={value})"

Case = tuple[SampleRead, ValueView]


class TargetOutOfRange(Rule):
    """HR304."""

    code = "HR304"
    name = "target-out-of-range"
    summary = "Class ids outside 0..C-1, where C is the number of classes."
    rationale = """
        On a GPU this is the error with the least useful message of all: a device-side assertion, raised later and
        somewhere else, after which the process cannot go on. On a CPU it is an index error in the loss. Usual causes:
        classes counted from 1, a lookup that failed and returned -1, a stray id in one annotation file, a class
        added to the data and not to the network.

        It is no fault if the value means "ignore": -100 anywhere; -1 and 255 in targets with many values (masks,
        tokens); -1 in most of the samples (an unlabelled split). For detection, 1..C is accepted, because 0 is the
        background there. Float targets, one vote per class, and boxes are not judged; nor is anything where the
        number of classes is not known, but for negative ids in a field that says it holds classes (`label`, `class`, `category`).
        """
    experiment = """
        The smallest and the largest value of each target of the chosen samples are compared with the number of classes
        that the data set, its contract or `--num-classes` says. Nothing is changed.
        """
    needs = (SampleReads,)
    fix = Fix(
        text="Correct the annotation of the named samples; or tell the network and the loss the true number of classes; "
        "or, if the value means that there is no class, tell the loss to leave it out.",
        safety="a corrected annotation changes the targets of the named samples only",
        snippet=SNIPPET.format(value=IGNORED_IN_MASKS),
    )
    references = ("pytorch#1204", "detectron2#2365", "Pytorch-UNet#258", "sunets#6", "YOLOV4_MCMOT#9")

    def judge(self, seen: SampleReads) -> list[Finding]:
        """One finding for each target field, and one for each that has -1 in a few samples."""
        targets = grouped(
            (view.field, (read, view))
            for read in seen.ok
            for view in read.fields
            if view.field in seen.target_fields and _holds_class_ids(view, seen.num_classes)
        )
        findings = []
        for field, cases in targets.items():
            unknown = [(read, view) for read, view in cases if _is_single(view) and view.minimum == -1]
            strays = [(read, view) for read, view in cases if _is_stray(read, view, seen.num_classes)]
            if seen.num_classes is not None:
                if strays:
                    findings.append(_out_of_range(field, strays, cases, seen, seen.num_classes))
                if 0 < len(unknown) <= len(cases) / 2:
                    findings.append(_negative(field, unknown, seen))
            elif 0 < len(strays) <= len(cases) / 2 and any(word in field.lower() for word in CLASS_WORDS):
                findings.append(_negative(field, strays, seen))
        return findings

    sick = (
        Example(
            title="One stray label",
            evidence=(
                reads(
                    ok(image(1, 8, 8), label(3)),
                    ok(image(1, 8, 8), label(12), sample_id="3/0007.png"),
                    ok(image(1, 8, 8), label(0)),
                    num_samples=1_797,
                    num_classes=10,
                    num_classes_from="dataset.classes",
                    target_fields=("label",),
                ),
            ),
            message="1 of 3 examined samples has a target outside 0..9 (10 classes, says dataset.classes): field 'label' "
            "of sample 3/0007.png is 12",
            sample_ids=("3/0007.png",),
        ),
        Example(
            title="Classes counted from 1",
            evidence=(
                reads(
                    ok(label(1, field="1")),
                    ok(label(2, field="1")),
                    ok(label(3, field="1")),
                    num_classes=3,
                    num_classes_from="--num-classes",
                    target_fields=("1",),
                ),
            ),
            message="1 of 3 samples has a target outside 0..2 (3 classes, says --num-classes): field '1' of sample 2 is 3; "
            "the classes look counted from 1",
            sample_ids=(2,),
        ),
        Example(
            title="A lookup that failed for one sample",
            evidence=(
                reads(
                    ok(label(1)),
                    ok(label(-1)),
                    ok(label(0)),
                    num_classes=2,
                    num_classes_from="contract",
                    target_fields=("label",),
                ),
            ),
            message="1 of 3 samples has a negative class id: field 'label' of sample 1 is -1",
            sample_ids=(1,),
        ),
        Example(
            title="A negative class id, though the number of classes is not known",
            evidence=(reads(ok(label(1)), ok(label(-7)), ok(label(4)), target_fields=("label",)),),
            message="1 of 3 samples has a negative class id: field 'label' of sample 1 is -7",
            sample_ids=(1,),
        ),
    )
    healthy = (
        Example(
            title="Every class id has its class",
            evidence=(
                reads(
                    ok(label(0)),
                    ok(label(9)),
                    num_classes=10,
                    num_classes_from="dataset.classes",
                    target_fields=("label",),
                ),
            ),
        ),
        Example(
            title="A mask that marks its border with 255",
            evidence=(
                reads(
                    ok(values("mask", 32, 32, dtype="uint8", minimum=0.0, maximum=255.0, is_whole=True)),
                    num_classes=21,
                    num_classes_from="contract",
                    target_fields=("mask",),
                ),
            ),
        ),
        Example(
            title="Tokens whose padding is -100",
            evidence=(
                reads(
                    ok(values("labels", 9, dtype="int64", minimum=-100.0, maximum=7.0, is_whole=True)),
                    num_classes=8,
                    num_classes_from="contract",
                    target_fields=("labels",),
                ),
            ),
        ),
        Example(
            title="Detection, where 0 is the background",
            evidence=(
                reads(
                    ok(
                        values("boxes", 2, 4),
                        values("labels", 2, dtype="int64", minimum=1.0, maximum=3.0, is_whole=True),
                    ),
                    num_classes=3,
                    num_classes_from="dataset.classes",
                    target_fields=("labels",),
                ),
            ),
        ),
        Example(
            title="Whole numbers to be predicted, without classes",
            evidence=(
                reads(
                    ok(label(-12, field="y")), ok(label(310, field="y")), ok(label(20, field="y")), target_fields=("y",)
                ),
            ),
        ),
        Example(
            title="A split without labels",
            evidence=(
                reads(
                    ok(label(-1)),
                    ok(label(-1)),
                    num_classes=10,
                    num_classes_from="dataset.classes",
                    target_fields=("label",),
                ),
            ),
        ),
    )


def _holds_class_ids(view: ValueView, num_classes: int | None) -> bool:
    """True for whole-number types that are neither one vote per class nor boxes."""
    if view.shape is None or view.minimum is None or not (view.dtype or "").startswith(("int", "uint")):
        return False
    is_votes = len(view.shape) == 1 and view.shape[0] == num_classes
    is_boxes = len(view.shape) == 2 and view.shape[1] in {4, 5}
    return not (is_votes or is_boxes)


def _is_single(view: ValueView) -> bool:
    return all(size == 1 for size in view.shape or ())


def _highest(read: SampleRead, num_classes: int) -> int:
    """The largest class id that is right for this sample."""
    has_background = any("box" in view.field.lower() for view in read.fields)
    # One class alone is a yes-or-no target, 0 and 1.
    return num_classes if has_background or num_classes == 1 else num_classes - 1


def _is_stray(read: SampleRead, view: ValueView, num_classes: int | None) -> bool:
    """True if a value lies outside and is none of those that mean "ignore"."""
    low, high = view.minimum or 0, view.maximum or 0
    is_ignored_above = high == IGNORED_IN_MASKS and not _is_single(view)
    is_above = num_classes is not None and high > _highest(read, num_classes) and not is_ignored_above
    return is_above or (low < 0 and low not in IGNORED)


def _value(view: ValueView) -> int:
    """The value that is outside: the largest, unless the smallest is negative."""
    low, high = int(view.minimum or 0), int(view.maximum or 0)
    return low if low < 0 and low not in IGNORED else high


def _says(field: str, strays: list[Case]) -> str:
    read, view = strays[0]
    return f"field {field!r} of sample {read.sample_id} {'is' if _is_single(view) else 'holds'} {_value(view)}"


def _out_of_range(field: str, strays: list[Case], cases: list[Case], seen: SampleReads, num_classes: int) -> Finding:
    is_from_one = min(view.minimum or 0 for _, view in cases) == 1 and {_value(view) for _, view in strays} == {
        num_classes
    }
    highest = _highest(strays[0][0], num_classes)
    message = (
        f"{share(len(strays), seen)} {verb(len(strays), 'has', 'have')} a target outside 0..{highest} ({num_classes} classes, "
        f"says {seen.num_classes_from or 'the data set'}): {_says(field, strays)}"
    )
    return Finding(
        message=f"{message}; the classes look counted from 1" if is_from_one else message,
        stage="transform",
        sample_ids=tuple(read.sample_id for read, _ in strays),
        where=strays[0][0].path,
        evidence={
            "field": field,
            "num_classes": num_classes,
            "smallest": int(min(view.minimum or 0 for _, view in cases)),
            "largest": int(max(view.maximum or 0 for _, view in cases)),
        },
        fix=Fix(
            text="Count the classes from 0, in the data set and in everything that reads its predictions.",
            safety="shifts every target by one",
            snippet="label = label - 1",
        )
        if is_from_one
        else _fix_for(_value(strays[0][1])),
    )


def _negative(field: str, strays: list[Case], seen: SampleReads) -> Finding:
    read, view = strays[0]
    return Finding(
        message=f"{share(len(strays), seen)} {verb(len(strays), 'has', 'have')} a negative class id: field {field!r} of sample "
        f"{read.sample_id} is {int(view.minimum or 0)}",
        severity="warning",
        confidence=0.6,
        stage="transform",
        sample_ids=tuple(read.sample_id for read, _ in strays),
        where=read.path,
        evidence={"field": field, "smallest": int(min(view.minimum or 0 for _, view in strays))},
        fix=_fix_for(int(view.minimum or 0)),
    )


def _fix_for(value: int) -> Fix:
    """The general fix, with the value that was found."""
    return dataclasses.replace(TargetOutOfRange.fix, snippet=SNIPPET.format(value=value))
