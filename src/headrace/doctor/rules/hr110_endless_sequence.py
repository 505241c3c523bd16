"""HR110 endless-sequence: a data set that a plain loop never comes to the end of."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.past_the_end import PastTheEnd
from headrace.doctor.made_up import loader
from headrace.doctor.questions.samples import is_bare
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing


def _end(**more: Any) -> PastTheEnd:
    fields: dict[str, Any] = {
        "dataset": "Digits",
        "num_samples": 100,
        "has_iter": False,
        "answered": (100, 101, 307),
        "num_asked": 3,
        "loops": (),
        "defined_at": "train.py:9",
    }
    return PastTheEnd(**{**fields, **more})


class EndlessSequence(Rule):
    """HR110."""

    code = "HR110"
    name = "endless-sequence"
    summary = (
        "A data set without `__iter__` that answers beyond its length, so that `for sample in dataset` never ends."
    )
    rationale = """
        A class with `__getitem__` and without `__iter__` is looped over by asking for 0, 1, 2, ... until an IndexError
        comes; `__len__` is not asked. If `__getitem__` computes its samples, or takes the index modulo something, no
        IndexError ever comes, and the loop, or `list(dataset)`, goes on for ever.

        It is no fault as long as only a DataLoader asks, because samplers know the length: a data set that repeats a
        small one by `index % len(...)` is healthy in one. So it is an error only where a file iterates over the data set
        itself, a warning if the data set is examined without a loader, and silent otherwise.
        """
    experiment = """
        Three rows beyond the end are asked for in one process, after everything else. The source of the user's loaded
        files is searched for loops over the data set.
        """
    needs = (PastTheEnd, LoaderFacts)
    fix = Fix(
        text="Say where the end is.",
        safety="same samples; loops over the data set end",
        snippet="def __getitem__(self, index):\n    if not 0 <= index < len(self):\n        raise IndexError(index)\n    ...",
    )
    references = ("pytorch#3636", "pytorch#45040", "pfio#136", "metatensor#499")

    def judge(self, seen: PastTheEnd, facts: LoaderFacts) -> list[Finding]:
        """At most one finding."""
        if seen.has_iter or not seen.num_asked or len(seen.answered) < seen.num_asked:
            return []
        if not (seen.loops or is_bare(facts)):
            return []
        what = f"{seen.dataset} has {seen.num_samples:,} samples and answers beyond them ({listing(seen.answered)})"
        if seen.loops:
            message = f"{what}, so that the loop at {listing(seen.loops, 3)} never ends"
        else:
            message = f"{what}, so that `for sample in dataset` would never end"
        return [
            Finding(
                message=message,
                severity="error" if seen.loops else "warning",
                confidence=0.9 if seen.loops else 0.7,
                basis="experiment",
                stage="read",
                where=seen.loops[0] if seen.loops else seen.defined_at,
                evidence={
                    "num_samples": seen.num_samples,
                    "answered": list(seen.answered),
                    "loops": list(seen.loops),
                    "defined_at": seen.defined_at,
                },
            )
        ]

    sick = (
        Example(
            title="A loop over the data set itself",
            evidence=(_end(loops=("train.py:30",)), loader()),
            message="Digits has 100 samples and answers beyond them (100, 101, 307), so that the loop at train.py:30 never "
            "ends",
        ),
        Example(
            title="A bare data set",
            evidence=(_end(), loader(kind="train.Digits", batch_size=None, collate=None)),
            message="Digits has 100 samples and answers beyond them (100, 101, 307), so that `for sample in dataset` would "
            "never end",
        ),
    )
    healthy = (
        Example(title="Only a DataLoader asks, and it knows the length", evidence=(_end(), loader())),
        Example(title="An IndexError at the end", evidence=(_end(answered=()), loader())),
        Example(
            title="A class with a loop of its own", evidence=(_end(has_iter=True, answered=(), num_asked=0), loader())
        ),
        Example(title="A length that is one too small: the loop ends", evidence=(_end(answered=(100,)), loader())),
    )
