"""HR208 non-finite-value: samples that hold NaN or infinity, and where it comes from."""

from __future__ import annotations

from typing import Any, Literal

from headrace.doctor.evidence.values import NonFiniteField, NonFiniteValues
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, named, verb

MARKER_SHARE = 0.5
"""If more of the samples than this hold such values from the start, they look like a marker for what is missing."""

GUARD = Fix(
    text="Guard the operation: a sample whose values are all equal has a deviation of 0, an empty one has no mean, and 0 "
    "has no logarithm.",
    safety="changes only the samples that are not finite today",
    snippet="x = (x - x.mean()) / x.std().clip(min=1e-6)",
)
DECIDE = Fix(
    text="Decide what a missing value means: fill it in and hand over a mask, leave the sample out, or mend the record.",
    safety="filling changes the values that are not finite today; a mask tells the network and the loss",
    snippet="observed = torch.isfinite(x)\n"
    "x = torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)\n"
    'sample = {"x": x, "observed": observed}',
)


def _field(**more: Any) -> NonFiniteField:
    fields: dict[str, Any] = {"field": "x", "kind": "NaN", "num_values": 64, "sample_ids": (7,), "origin": "unknown"}
    return NonFiniteField(**{**fields, **more})


class NonFiniteValue(Rule):
    """HR208."""

    code = "HR208"
    name = "non-finite-value"
    summary = (
        "Samples that hold NaN or infinity: already in the record, or from an operation that is named by its line."
    )
    rationale = """
        One NaN in one sample makes the loss NaN, and one step later every weight. Because shuffling decides when the
        sample is met, it looks like a learning rate that is too high. Usual causes: normalising a sample whose values
        are all equal (0/0), the mean of something empty, the logarithm of 0, missing values in a table.

        It is no fault if the sample says which of its values are missing, by a mask beside them; nor in a mask of 0 and
        -infinity, which attention adds to its scores. NaN that is stored in targets, in single numbers, or in most of
        the samples may be a marker that the loss knows, and is a warning.
        """
    experiment = """
        Samples with such values are prepared once more while numpy and torch are listened to: the first operation that
        gives NaN or infinity from finite numbers is named. If there is none, what the data set holds and which file it
        opened is looked at. Of a stream, the first samples are prepared this way.
        """
    needs = (NonFiniteValues,)
    fix = DECIDE
    references = ("Marigold#111", "DeepSpot#9", "TESLA-tf#1", "Social-STGCNN#20")

    def judge(self, seen: NonFiniteValues) -> list[Finding]:
        """One finding for each field and origin."""
        return [_finding(field, seen) for field in seen.fields if not field.is_declared]

    sick = (
        Example(
            title="A constant sample divided by its deviation",
            evidence=(
                NonFiniteValues(
                    num_examined=60,
                    fields=(_field(origin="computed", where="train.py:21", detail="x = (x - x.mean()) / x.std()"),),
                ),
            ),
            message="1 of 60 samples holds NaN in field 'x' (sample 7): it comes from `x = (x - x.mean()) / x.std()` "
            "(train.py:21)",
            sample_ids=(7,),
        ),
        Example(
            title="Missing values in the stored table",
            evidence=(
                NonFiniteValues(
                    num_examined=60,
                    fields=(_field(origin="stored", where="dataset.table[3]", sample_ids=(3, 4)),),
                ),
            ),
            message="2 of 60 samples hold NaN in field 'x' (first sample 3): it is already in dataset.table[3]",
            sample_ids=(3, 4),
        ),
        Example(
            title="Infinity from a file",
            evidence=(
                NonFiniteValues(
                    num_examined=60, fields=(_field(kind="infinity", origin="file", where="data/0007.npy"),)
                ),
            ),
            message="1 of 60 samples holds infinity in field 'x' (sample 7): it is probably already in data/0007.npy",
            sample_ids=(7,),
        ),
        Example(
            title="A batch that is normalised by collate",
            evidence=(
                NonFiniteValues(
                    num_examined=60,
                    fields=(_field(origin="collate", where="join (train.py:9)", sample_ids=(0, 1)),),
                ),
            ),
            message="a batch holds NaN in field 'x', though its samples do not: it comes from join (train.py:9)",
            sample_ids=(0, 1),
        ),
    )
    healthy = (
        Example(title="Finite values", evidence=(NonFiniteValues(num_examined=60, fields=()),)),
        Example(
            title="A mask beside the missing values",
            evidence=(
                NonFiniteValues(
                    num_examined=60, fields=(_field(origin="stored", where="dataset.x", is_declared=True),)
                ),
            ),
        ),
    )


def _finding(field: NonFiniteField, seen: NonFiniteValues) -> Finding:
    num = len(field.sample_ids)
    origin = {
        "computed": f"it comes from `{field.detail}` ({field.where})",
        "stored": f"it is already in {field.where}",
        "file": f"it is probably already in {field.where}",
        "collate": f"it comes from {field.where}",
        "unknown": "no operation of numpy or torch was heard to give it",
    }[field.origin]
    if field.origin == "collate":
        message = f"a batch holds {field.kind} in field {field.field!r}, though its samples do not: {origin}"
    else:
        message = (
            f"{num} of {count(seen.num_examined, 'sample')} {verb(num, 'holds', 'hold')} {field.kind} in field "
            f"{field.field!r} {named(field.sample_ids)}: {origin}"
        )
    severity, confidence = _weight(field, num / max(seen.num_examined, 1))
    return Finding(
        message=message,
        severity=severity,
        confidence=confidence,
        basis="experiment",
        stage={"computed": "transform", "collate": "collate"}.get(field.origin, "read"),
        sample_ids=field.sample_ids,
        where=field.where,
        evidence={"field": field.field, "num_values": field.num_values, "origin": field.origin},
        fix=GUARD if field.origin in {"computed", "collate"} else DECIDE,
    )


def _weight(field: NonFiniteField, share: float) -> tuple[Literal["error", "warning"], float]:
    """What an operation gave nobody meant; what was stored may be a marker."""
    if field.origin in {"computed", "collate"}:
        return "error", 0.9
    is_marker = field.is_target or field.is_single or share > MARKER_SHARE
    return ("warning", 0.6) if is_marker else ("error", 0.8)
