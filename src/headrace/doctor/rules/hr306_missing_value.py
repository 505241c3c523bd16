"""HR306 missing-value: samples that are None, or lack a field that the others have."""

from __future__ import annotations

import collections
import re
from collections.abc import Collection

from headrace.contract.view import SOLE_FIELD, ValueView
from headrace.doctor.evidence import CollateTrial, SampleRead, SampleReads
from headrace.doctor.made_up import collated, image, label, ok, reads, values
from headrace.doctor.questions.samples import blame, grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, share, verb

ITEM = re.compile(r"(?<=\.)\d+(?=\.|$)")
"""The number of an item in a list below the top: how many there are is a matter of length (HR302)."""

MOST_FIELDS = 5
"""Fields that a message names; the evidence names all."""


class MissingValue(Rule):
    """HR306."""

    code = "HR306"
    name = "missing-value"
    summary = "Samples that are None, hold None, or lack a field that most others have."
    rationale = """
        One branch of `__getitem__` that falls through without `return` gives None; one annotation file without an
        entry gives a sample without a key. Collate then says "found NoneType" or raises KeyError, for the batch and
        not for the sample. A field that only some samples have is lost without a word if the first sample of the
        batch lacks it.

        It is no fault if a collate function of your own was seen to join such samples, for instance by leaving them
        out. Batches then vary in size, which is HR310.
        """
    experiment = """
        The fields of the chosen samples are compared, each sample prepared alone; then the same samples are joined by
        the loader's own collate function in one process. Nothing is changed.
        """
    needs = (SampleReads, CollateTrial)
    fix = Fix(
        text="Raise where the value is missing, so that the loader can name the sample and leave it out by policy; or "
        "return a value that means: none.",
        safety="raising changes which samples are delivered, each one counted; a stand-in value needs a loss that knows it",
        snippet="def __getitem__(self, index):\n    record = self.records[index]\n    if record.label is None:\n"
        '        raise ValueError(f"record {index} has no label")\n    return record.image, record.label',
    )
    references = ("pytorch#74337", "pytorch#57429", "kits19-challenge#7", "YOLOX#1523")

    def judge(self, seen: SampleReads, trial: CollateTrial) -> list[Finding]:
        """One finding for each field that is None, and one for each set of samples with other fields than most."""
        empty = grouped((view.field, read) for read in seen.ok for view in read.fields if view.kind == "none")
        found = [_none_finding(field, members, seen, trial) for field, members in empty.items()]
        found += [_fields_finding(odd, members, seen, trial) for odd, members in _other_fields(seen).items()]
        return [finding for finding in found if finding is not None]

    sick = (
        Example(
            title="A branch without return",
            evidence=(
                reads(
                    ok(image(3, 8, 8)), ok(ValueView(field="sample", kind="none")), ok(image(3, 8, 8)), num_samples=60
                ),
                collated(ids=(0, 1, 2), error_type="TypeError", odd_ids=(1,)),
            ),
            message="1 of 3 examined samples is None (sample 1); default_collate cannot join that",
            sample_ids=(1,),
        ),
        Example(
            title="A target that is None",
            evidence=(
                reads(
                    ok(image(3, 8, 8), label(1)),
                    ok(image(3, 8, 8), label(0)),
                    ok(image(3, 8, 8), ValueView(field="label", kind="none"), sample_id="c.png"),
                ),
                collated(ids=(0, 1, "c.png"), error_type="TypeError", odd_ids=("c.png",)),
            ),
            message="1 of 3 samples holds None in field 'label' (sample c.png); default_collate cannot join that",
            sample_ids=("c.png",),
        ),
        Example(
            title="An annotation without a box",
            evidence=(
                reads(ok(image(3, 8, 8), values("box", 4)), ok(image(3, 8, 8), values("box", 4)), ok(image(3, 8, 8))),
                collated(ids=(0, 1, 2), error_type="KeyError", odd_ids=(2,)),
            ),
            message="1 of 3 samples has other fields than most (sample 2): without 'box'",
            sample_ids=(2,),
        ),
    )
    healthy = (
        Example(
            title="Every sample has the same fields",
            evidence=(
                reads(ok(image(3, 8, 8), label(1)), ok(image(3, 8, 8), label(0))),
                collated(image(2, 3, 8, 8), values("label", 2, dtype="int64")),
            ),
        ),
        Example(
            title="Samples without a mask, which the user's own collate function knows",
            evidence=(
                reads(
                    ok(image(3, 8, 8), ValueView(field="mask", kind="none")), ok(image(3, 8, 8), values("mask", 8, 8))
                ),
                collated(image(2, 3, 8, 8), own="collate_optional (train.py:7)"),
            ),
        ),
        Example(
            title="Samples with fields of their own, in batches of one",
            evidence=(
                reads(ok(image(3, 8, 8)), ok(image(3, 8, 8), values("mask", 8, 8))),
                collated(image(1, 3, 8, 8), ids=(0,)),
            ),
        ),
        Example(
            title="Lists of several lengths, one of them empty: that is HR302",
            evidence=(
                reads(
                    ok(values("objects.0.box", 4), values("objects.1.box", 4)),
                    ok(ValueView(field="objects", kind="sequence")),
                    ok(values("objects.0.box", 4)),
                ),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(1, 2)),
            ),
        ),
    )


def _none_finding(field: str, members: list[SampleRead], seen: SampleReads, trial: CollateTrial) -> Finding | None:
    """Says which samples are None, or hold it in one field; None if collate is known to join them."""
    ids = tuple(read.sample_id for read in members)
    sure = blame(trial, ids)
    if sure < 0.5:
        return None
    if field == SOLE_FIELD:
        what = f"{verb(len(ids), 'is', 'are')} None"
    else:
        what = f"{verb(len(ids), 'holds', 'hold')} None in field {field!r}"
    return Finding(
        message=f"{share(len(ids), seen)} {what} {named(ids)}; {trial.collate} cannot join that",
        confidence=sure,
        stage="transform",
        sample_ids=ids,
        where=members[0].path,
        evidence={"field": None if field == SOLE_FIELD else field, "num_samples": len(ids)},
    )


OddFields = tuple[tuple[str, ...], tuple[str, ...]]
"""(fields that a sample lacks, fields that it alone has), held against most of the samples."""


def _fields_finding(
    odd: OddFields, members: list[SampleRead], seen: SampleReads, trial: CollateTrial
) -> Finding | None:
    """Says which samples have other fields than most; None if collate is known to join them."""
    ids = tuple(read.sample_id for read in members)
    # The default rules take the fields of the first sample and drop the others' in silence: success proves nothing.
    sure = 1.0 if trial.is_default else blame(trial, ids)
    if sure < 0.5 or len(trial.sample_ids) < 2:  # a loader that joins nothing takes any fields
        return None
    absent, extra = odd
    parts = [
        f"{word} {', '.join(repr(field) for field in fields[:MOST_FIELDS])}"
        for word, fields in (("without", absent), ("with", extra))
        if fields
    ]
    return Finding(
        message=f"{share(len(ids), seen)} {verb(len(ids), 'has', 'have')} other fields than most {named(ids)}: "
        f"{', '.join(parts)}",
        confidence=sure,
        stage="transform",
        sample_ids=ids,
        where=members[0].path,
        evidence={"absent": list(absent), "extra": list(extra)},
    )


def _other_fields(seen: SampleReads) -> dict[OddFields, list[SampleRead]]:
    """The samples whose fields are not those of most samples, by what they lack and what they alone have."""
    named = [
        (read, frozenset(ITEM.sub("*", view.field) for view in read.fields))
        for read in seen.ok
        if not any(view.field == SOLE_FIELD and view.kind == "none" for view in read.fields)
    ]
    forms = collections.Counter(fields for _, fields in named)
    usual = forms.most_common(1)[0][0] if forms else frozenset()
    odd = []
    for read, fields in named:
        absent = tuple(sorted(field for field in usual - fields if not _has_kin(field, fields)))
        extra = tuple(sorted(field for field in fields - usual if not _has_kin(field, usual)))
        if absent or extra:
            odd.append(((absent, extra), read))
    return grouped(odd)


def _has_kin(field: str, others: Collection[str]) -> bool:
    """True if one of the others is this field's container, or an item of it: None or [] in the place of an object."""
    return any(other.startswith(f"{field}.") or field.startswith(f"{other}.") for other in others)
