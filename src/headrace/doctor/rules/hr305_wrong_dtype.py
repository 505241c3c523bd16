"""HR305 wrong-dtype: fields whose type the loss, the network or collate does not take."""

from __future__ import annotations

import collections

from headrace.contract.view import ValueView
from headrace.doctor.evidence import CollateTrial, SampleRead, SampleReads
from headrace.doctor.made_up import collated, image, label, ok, reads, values
from headrace.doctor.questions.samples import JOINABLE_KINDS, blame, grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import share, verb

Case = tuple[SampleRead, ValueView]

TO_FLOAT32 = Fix(
    text="Convert to float32 where the sample is made.",
    safety="keeps 7 decimal digits instead of 16, and halves the memory of the batch",
    snippet="features = torch.as_tensor(features, dtype=torch.float32)",
)
TO_INT64 = Fix(
    text="Give class ids as int64.",
    safety="same values",
    snippet="label = int(label)  # collate makes int64 of Python's int",
)
TO_ONE_TYPE = Fix(
    text="Convert every sample to one type, and to one scale, where it is made.",
    safety="changes the odd samples only",
    snippet="image = torch.as_tensor(image)\nif image.dtype == torch.uint8:\n    image = image.float() / 255",
)
TO_TENSOR = Fix(
    text="Turn the object into a tensor, an array or a number in the data set; or pass a collate function that can join it.",
    safety="same values in another container",
    snippet="from torchvision.transforms import v2\n\n"
    "# For Pillow images:\n"
    "to_float = v2.ToDtype(torch.float32, scale=True)\n"
    "to_tensor = v2.Compose([v2.ToImage(), to_float])",
)


class WrongDtype(Rule):
    """HR305."""

    code = "HR305"
    name = "wrong-dtype"
    summary = (
        "Class ids as floats, float64 inputs, types that differ between samples, objects that collate cannot join."
    )
    rationale = """
        "Expected Long but found Float", "expected Float but found Double": the loss and the layers take one type, and
        say nothing of where the other came from. It comes from NumPy, whose floats are float64, from pandas, which
        makes floats of whole numbers beside a missing value, and from an image that was never made a tensor. A type
        that differs between samples is worse: torch joins uint8 and float32 without a word, and 0..255 stands beside
        0..1.

        It is no fault if regression or yes-or-no targets are floats: they are judged only where the number of classes
        is known, all targets are whole numbers and some are above 1. float64 is a warning, because a network may be
        double by intention. Nothing is said of a field that a collate function of your own converts.
        """
    experiment = """
        The types of the fields of the chosen samples are compared, each sample prepared alone, and then with the types
        in a batch that the loader's own collate function makes. Nothing is changed.
        """
    needs = (SampleReads, CollateTrial)
    fix = TO_ONE_TYPE
    references = (
        "segmentation_models.pytorch#197",
        "MAML-Pytorch#45",
        "character-based-cnn#5",
        "im2recipe-Pytorch#12",
        "texar-pytorch#173",
    )

    def judge(self, seen: SampleReads, trial: CollateTrial) -> list[Finding]:
        """At most one finding for each field: the first of the four questions that it fails."""
        by_field = grouped((view.field, (read, view)) for read in seen.ok for view in read.fields)
        findings = []
        for field, cases in by_field.items():
            found = (
                _cannot_be_joined(field, cases, seen, trial)
                or _differs(field, cases, seen, trial)
                or _float_class_ids(field, cases, seen, trial)
                or _double_input(field, cases, seen, trial)
            )
            findings += [] if found is None else [found]
        return findings

    sick = (
        Example(
            title="Images that were never made tensors",
            evidence=(
                reads(
                    ok(ValueView(field="0", kind="PngImageFile"), label(1, field="1")),
                    ok(ValueView(field="0", kind="PngImageFile"), label(0, field="1")),
                ),
                collated(error_type="TypeError"),
            ),
            message="all 2 samples hold a PngImageFile in field '0', which default_collate cannot join",
            sample_ids=(0, 1),
        ),
        Example(
            title="One sample in bytes among samples in floats",
            evidence=(
                reads(
                    ok(image(3, 8, 8)), ok(image(3, 8, 8)), ok(values("image", 3, 8, 8, dtype="uint8", maximum=255.0))
                ),
                collated(image(3, 3, 8, 8), ids=(0, 1)),
            ),
            message="1 of 3 samples has another type in field 'image': sample 2 is tensor of uint8, the usual type is "
            "tensor of float32",
            sample_ids=(2,),
        ),
        Example(
            title="Class ids that passed through a float column",
            evidence=(
                reads(
                    ok(image(3, 8, 8), label(7.0, dtype="float64")),
                    ok(image(3, 8, 8), label(0.0, dtype="float64")),
                    num_classes=10,
                    num_classes_from="dataset.classes",
                    target_fields=("label",),
                ),
                collated(image(2, 3, 8, 8), values("label", 2, dtype="float64")),
            ),
            message="field 'label' holds class ids as float64 in all 2 samples; a loss over 10 classes takes int64",
            sample_ids=(0, 1),
        ),
        Example(
            title="A row of a NumPy table",
            evidence=(
                reads(
                    ok(values("0", 13, dtype="float64", kind="array"), label(0.5, field="1", dtype="float")),
                    ok(values("0", 13, dtype="float64", kind="array"), label(1.5, field="1", dtype="float")),
                    target_fields=("1",),
                ),
                collated(values("0", 2, 13, dtype="float64"), values("1", 2, dtype="float64")),
            ),
            message="field '0' is float64 in all 2 samples; layers take float32 unless the whole network is double",
            sample_ids=(0, 1),
        ),
    )
    healthy = (
        Example(
            title="float32 inputs and class ids as Python's int",
            evidence=(
                reads(
                    ok(image(3, 8, 8), label(4)),
                    ok(image(3, 8, 8), label(7)),
                    num_classes=10,
                    num_classes_from="dataset.classes",
                    target_fields=("label",),
                ),
                collated(image(2, 3, 8, 8), values("label", 2, dtype="int64")),
            ),
        ),
        Example(
            title="Regression: float targets that happen to be whole, without classes",
            evidence=(
                reads(ok(label(3.0, dtype="float")), ok(label(12.0, dtype="float")), target_fields=("label",)),
                collated(values("label", 2, dtype="float64")),
            ),
        ),
        Example(
            title="Yes-or-no targets for a sigmoid",
            evidence=(
                reads(
                    ok(label(1.0, dtype="float32")),
                    ok(label(0.0, dtype="float32")),
                    num_classes=2,
                    num_classes_from="dataset.classes",
                    target_fields=("label",),
                ),
                collated(values("label", 2, dtype="float32")),
            ),
        ),
        Example(
            title="Pillow images and float64 that the user's own collate function converts",
            evidence=(
                reads(
                    ok(ValueView(field="0", kind="Image"), values("1", 5, dtype="float64", kind="array")),
                    ok(ValueView(field="0", kind="Image"), values("1", 5, dtype="float64", kind="array")),
                ),
                collated(values("0", 2, 3, 8, 8), values("1", 2, 5), own="processor (train.py:30)"),
            ),
        ),
    )


def _type_of(view: ValueView) -> str:
    """What a finding calls the type; Python's own numbers are what collate makes of them."""
    if view.kind == "sequence":
        return view.kind  # of whole numbers here and of fractions there: what its length holds is no type
    if view.kind == "number":
        return {"int": "int64", "float": "float64"}.get(view.dtype or "", view.dtype or "number")
    return f"{view.kind} of {view.dtype}" if view.dtype else view.kind


def _cannot_be_joined(field: str, cases: list[Case], seen: SampleReads, trial: CollateTrial) -> Finding | None:
    """Objects, and arrays of objects or text, that torch's default rules refuse."""
    refused = [
        (read, view)
        for read, view in cases
        if view.kind not in JOINABLE_KINDS | {"none"}
        or (view.kind == "array" and (view.dtype or "")[:1] in {"o", "<", ">", "S"})
    ]
    if not refused or trial.succeeded or not trial.is_default:
        return None
    first = refused[0][1]
    what = f"an array of {first.dtype}" if first.kind == "array" else f"{_article(first.kind)} {first.kind}"
    return _finding(
        f"{share(len(refused), seen)} {verb(len(refused), 'holds', 'hold')} {what} in field {field!r}, which "
        f"{trial.collate} cannot join",
        field,
        refused,
        TO_TENSOR,
        stage="collate",
    )


def _article(noun: str) -> str:
    return "an" if noun[:1] in "AEIOUaeiou" else "a"


def _differs(field: str, cases: list[Case], seen: SampleReads, trial: CollateTrial) -> Finding | None:
    """Types that are not the same in every sample; None values are HR306."""
    typed = [(read, view) for read, view in cases if view.kind != "none"]
    usual = collections.Counter(_type_of(view) for _, view in typed).most_common(1)
    odd = [(read, view) for read, view in typed if _type_of(view) != usual[0][0]]
    # Torch joins some pairs of types in silence, so a success of the default rules proves nothing here.
    if not odd or not (trial.is_default or blame(trial, [read.sample_id for read, _ in odd]) >= 0.5):
        return None
    first, first_view = odd[0]
    is_plain = all(view.kind == "number" for _, view in typed)
    return _finding(
        f"{share(len(odd), seen)} {verb(len(odd), 'has', 'have')} another type in field {field!r}: sample "
        f"{first.sample_id} is {_type_of(first_view)}, the usual type is {usual[0][0]}",
        field,
        odd,
        TO_ONE_TYPE,
        severity="warning" if is_plain else "error",
        confidence=0.7 if is_plain else 0.9,
    )


def _float_class_ids(field: str, cases: list[Case], seen: SampleReads, trial: CollateTrial) -> Finding | None:
    """Class ids in a float type, where the number of classes is known and the values cannot be yes-or-no."""
    if field not in seen.target_fields or seen.num_classes is None:
        return None
    views = [view for _, view in cases]
    is_float = all((view.dtype or "").startswith("float") and view.is_whole for view in views)
    is_votes = any(view.shape is not None and view.shape[:1] == (seen.num_classes,) for view in views)
    highest = max((view.maximum or 0 for view in views), default=0)
    if not is_float or is_votes or not 1 < highest <= max(seen.num_classes, 255) or not _reaches_batch(views, trial):
        return None
    return _finding(
        f"field {field!r} holds class ids as {views[0].dtype} in {share(len(cases), seen)}; a loss over "
        f"{seen.num_classes} classes takes int64",
        field,
        cases,
        TO_INT64,
        confidence=0.8,
    )


def _double_input(field: str, cases: list[Case], seen: SampleReads, trial: CollateTrial) -> Finding | None:
    """Inputs in float64. Single numbers are left alone: they are often dates, ids or weights, not inputs."""
    doubles = [(read, view) for read, view in cases if view.dtype == "float64" and view.shape]
    if not doubles or field in seen.target_fields or not _reaches_batch([view for _, view in doubles], trial):
        return None
    return _finding(
        f"field {field!r} is float64 in {share(len(doubles), seen)}; layers take float32 unless the whole network is double",
        field,
        doubles,
        TO_FLOAT32,
        severity="warning",
        confidence=0.7,
    )


def _reaches_batch(views: list[ValueView], trial: CollateTrial) -> bool:
    """True if the type is still there after the loader's own collate function, as far as is known."""
    kinds = {"float64" if view.dtype == "float" else view.dtype for view in views}
    return trial.is_default or not trial.succeeded or any(view.dtype in kinds for view in trial.batch_fields)


def _finding(
    message: str,
    field: str,
    cases: list[Case],
    fix: Fix,
    *,
    severity: Severity = "error",
    confidence: float = 1.0,
    stage: str = "transform",
) -> Finding:
    first = cases[0][0]
    return Finding(
        message=message,
        severity=severity,
        confidence=confidence,
        stage=stage,
        sample_ids=tuple(read.sample_id for read, _ in cases),
        where=first.path,
        evidence={"field": field, "types": dict(collections.Counter(_type_of(view) for _, view in cases))},
        fix=fix,
    )
