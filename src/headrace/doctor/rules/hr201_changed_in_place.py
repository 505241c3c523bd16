"""HR201 changed-in-place: reading a sample changes what it is read from, so that the next reading gives another one."""

from __future__ import annotations

import re
from typing import Literal

from headrace.doctor.evidence.repeats import ChangedPart, Repeats, SampleRepeat
from headrace.doctor.made_up.repeats import frozen, part, repeat, repeats
from headrace.doctor.questions.samples import grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, verb

KEY = re.compile(r"\[[^\]]*\]")

ON_A_COPY = Fix(
    text="Work on a copy of what the data set keeps: `x = x - mean` instead of `x -= mean`, `.copy()` or `.clone()` "
    "where the record is taken, `dict(target)` before keys are changed.",
    safety="one copy per sample; every reading then gives what the first one gave",
    snippet="def __getitem__(self, index):\n"
    "    image = self.images[index].copy()  # tensors: .clone()\n"
    "    target = copy.deepcopy(self.targets[index])\n"
    "    image -= self.mean\n"
    "    return image, target",
)
NO_COUNTER = Fix(
    text="Let the sample depend on its index, and on an epoch that the training loop sets, but not on what was read before.",
    safety="samples become the same in every order of reading, with any number of workers",
    snippet="def set_epoch(self, epoch):\n    self.epoch = epoch",
)


class ChangedInPlace(Rule):
    """HR201."""

    code = "HR201"
    name = "changed-in-place"
    summary = "Samples that become others each time they are read, because reading changes what the data set keeps."
    rationale = """
        `x = self.images[i]; x -= mean` changes the cached array and not only the sample: after some epochs nothing is
        left of it. Boxes that are scaled in place shrink with every epoch; a key that is popped from a cached target is
        gone the second time. Nothing raises an error. With workers that are started anew for every epoch the fault
        sleeps, because each worker begins with a fresh copy; without workers, or with persistent ones, it is awake.

        It is no fault that random augmentation differs: the generators are set back before each reading. What only
        differs (the clock, the operating system's randomness, a generator inside a library) is not reported. Reported
        is what was proven: a sample that is itself again as soon as one array, entry or attribute has its former value.
        A cache that fills, a statistic or a counter that no sample depends on is no fault. A counter or a buffer that
        random code uses for its own purposes is only mentioned.
        """
    experiment = """
        A few samples are read six times in a fresh process with all visible random generators set back, and arrays,
        containers and attributes that the data set holds are compared before and after. Where the sample differs, what
        was changed is put back, and the sample is read once more.
        """
    needs = (Repeats,)
    fix = ON_A_COPY
    references = ("pycls#21", "doctr#840", "PaddleX#720")

    def judge(self, seen: Repeats) -> list[Finding]:
        """One finding for each thing that is changed, keys aside."""
        causes = grouped(
            ((KEY.sub("[...]", one.changed[0].path), one.changed[0].is_of_sample), one)
            for one in seen.samples
            if one.changed
        )
        return [_finding(members, seen) for members in causes.values()]

    sick = (
        Example(
            title="The mean is taken from the cached image",
            evidence=(
                repeats(
                    repeat(part("dataset.images[0]"), means=(0.43, -0.07)), repeat(part("dataset.images[1]")), repeat()
                ),
            ),
            message="2 of 3 samples that were read again come out otherwise each time (first sample 0): reading changes "
            "the values of dataset.images[0], and field 'image' with it (mean 0.43, then -0.07)",
            sample_ids=(0, 1),
        ),
        Example(
            title="A key popped from the target",
            evidence=(
                repeats(
                    repeat(
                        part("dataset.targets[0]['boxes']", "removed"),
                        outcome="fails",
                        fields=(),
                        error="KeyError: 'boxes'",
                        error_at="train.py:9 in __getitem__",
                    )
                ),
            ),
            message="1 of 1 sample that was read again can be read only once (sample 0): reading takes away "
            "dataset.targets[0]['boxes'], and the next reading fails (KeyError: 'boxes')",
            sample_ids=(0,),
        ),
        Example(
            title="Boxes scaled in the stored list",
            evidence=(
                repeats(repeat(part("dataset.boxes[0][1]", "value"), fields=("boxes",)), repeat(), repeat(), repeat()),
            ),
            message="1 of 4 samples that were read again comes out otherwise each time (sample 0): reading changes "
            "dataset.boxes[0][1], and field 'boxes' with it",
            sample_ids=(0,),
        ),
        Example(
            title="A hidden counter",
            evidence=(repeats(repeat(part("dataset.calls", "value", is_of_sample=False)), repeat()),),
            message="1 of 2 samples that were read again comes out otherwise each time (sample 0): reading changes "
            "dataset.calls, and field 'image' with it",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(title="The same sample each time", evidence=(repeats(frozen(), frozen()),)),
        Example(
            title="A sample that holds the time",
            evidence=(repeats(repeat(outcome="differs", fields=("loaded_at",)), repeat()),),
        ),
        Example(
            title="Random augmentation, equal under equal seeds",
            evidence=(
                repeats(
                    repeat(drawn_first=("numpy.random",), drawn_later=("numpy.random",)), draws=("train.py:9 random()",)
                ),
            ),
        ),
    )


def _finding(members: list[SampleRepeat], seen: Repeats) -> Finding:
    ids = tuple(one.sample_id for one in members)
    first, cause = members[0], members[0].changed[0]
    total = sum(one.outcome != "unreadable" for one in seen.samples)
    which = f"{len(ids)} of {total} {verb(total, 'sample that was', 'samples that were')} read again"
    if first.outcome == "fails":
        message = f"{which} can be read only once {named(ids)}: reading {_deed(cause)}, and the next reading fails ({first.error})"
    else:
        means = "" if first.means is None else f" (mean {first.means[0]:.3g}, then {first.means[1]:.3g})"
        message = (
            f"{which} {verb(len(ids), 'comes', 'come')} out otherwise each time {named(ids)}: reading {_deed(cause)}, and "
            f"field {first.fields[0]!r} with it{means}"
        )
    severity, confidence = _weight(cause, members, seen)
    return Finding(
        message=message,
        severity=severity,
        confidence=confidence,
        basis="experiment",
        stage="transform",
        sample_ids=ids,
        where=first.error_at or cause.path,
        evidence={
            "changed": [one.path for one in first.changed],
            "kind": cause.kind,
            "fields": list(first.fields),
            "means": None if first.means is None else list(first.means),
        },
        fix=None if cause.is_of_sample or cause.kind == "content" else NO_COUNTER,
    )


def _deed(cause: ChangedPart) -> str:
    return {
        "content": f"changes the values of {cause.path}",
        "value": f"changes {cause.path}",
        "removed": f"takes away {cause.path}",
        "replaced": f"puts something else in the place of {cause.path}",
    }[cause.kind]


def _weight(
    cause: ChangedPart, members: list[SampleRepeat], seen: Repeats
) -> tuple[Literal["error", "warning", "info"], float]:
    """A store of the sample is not meant to change. What samples share may be the state of an augmentation."""
    # Whatever their keys are, things of which each sample has its own are the samples' store.
    is_store = cause.is_of_sample or len({one.changed[0].path for one in members}) == len(members) > 1
    if is_store or members[0].outcome == "fails":
        return "error", 1.0
    if seen.draws:
        return "info", 0.6
    return "warning", 0.9 if cause.kind == "content" else 0.7
