"""HR311 failing-collate: samples that look alike, and a collate function that fails on them all the same."""

from __future__ import annotations

from headrace.doctor.evidence import CollateTrial, SampleRead, SampleReads
from headrace.doctor.made_up import collated, image, label, ok, reads, values
from headrace.doctor.questions.samples import JOINABLE_KINDS, ended_early
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, quoted


class FailingCollate(Rule):
    """HR311."""

    code = "HR311"
    name = "failing-collate"
    summary = (
        "A collate function that fails although the samples agree in fields, types and shapes; or hangs, or crashes."
    )
    rationale = """
        Every sample is fine, they fit beside each other, and still no batch comes out: the collate function expects
        something else than the data set gives, often a key that was renamed, a tuple that became a dictionary, or a
        tokenizer that was never set.

        It is no fault of the collate function if samples differ from each other: shapes are HR301, lengths HR302,
        types HR305, missing values HR306, and each of them names the odd samples.
        """
    experiment = """
        The chosen samples, each readable alone, are joined by the loader's own collate function in one process, and
        each is tried in a pair with the first. Nothing is changed.
        """
    needs = (SampleReads, CollateTrial)
    fix = Fix(
        text="Call the collate function on one sample and follow the traceback.",
        safety="only looks",
        snippet="loader.collate_fn([loader.dataset[0]])",
    )
    references = ("pytorch#74337",)

    def judge(self, seen: SampleReads, trial: CollateTrial) -> list[Finding]:
        """At most one finding."""
        # A trial that ended the interpreter names its samples by row number.
        by_name = {read.index: read for read in seen.ok} | {read.sample_id: read for read in seen.ok}
        joined = [by_name[name] for name in trial.sample_ids if name in by_name]
        # Pairs that fail are the sharper evidence; without any, all samples together must be alike.
        odd = [by_name[name] for name in trial.odd_ids if name in by_name]
        # They failed beside one that is not odd, which need not be the first one.
        fitting = [read for read in joined if read not in odd] or joined
        alike = {_form(read, is_default=trial.is_default) for read in ([*fitting[:1], *odd] if odd else joined)}
        is_unexplained = ended_early(trial) or (len(alike) == 1 and None not in alike)
        if trial.succeeded or not is_unexplained:
            return []
        error = quoted(trial.error_type, trial.error_message)
        what = count(len(trial.sample_ids), "sample")
        return [
            Finding(
                message=f"{trial.collate} gives no batch of {what}: {error}"
                if ended_early(trial)
                else f"{trial.collate} fails on {what} that agree in fields, types and shapes: {error}",
                stage="collate",
                sample_ids=tuple(read.sample_id for read in joined),
                where=trial.error_at,
                evidence={"collate": trial.collate, "error": error},
            )
        ]

    sick = (
        Example(
            title="A key that the data set no longer has",
            evidence=(
                reads(ok(image(3, 8, 8), label(1)), ok(image(3, 8, 8), label(0))),
                collated(
                    own="collate (train.py:12)",
                    error_type="KeyError",
                    error_message="'target'",
                    error_at="train.py:14 in collate",
                ),
            ),
            message="collate (train.py:12) fails on 2 samples that agree in fields, types and shapes: KeyError: 'target'",
            sample_ids=(0, 1),
        ),
        Example(
            title="Pairs that fail, each of two samples that look alike",
            evidence=(
                reads(ok(image(3, 8, 8)), ok(image(3, 8, 8)), ok(image(1, 8, 8))),
                collated(
                    ids=(0, 1, 2), own="mix (a.py:3)", error_type="TypeError", error_message="no alpha", odd_ids=(1,)
                ),
            ),
            message="mix (a.py:3) fails on 3 samples that agree in fields, types and shapes: TypeError: no alpha",
            sample_ids=(0, 1, 2),
        ),
        Example(
            title="A collate function that waits for ever",
            evidence=(
                reads(ok(image(3, 8, 8), sample_id="a.png"), ok(image(1, 8, 8), sample_id="b.png")),
                collated(
                    own="collate (a.py:3)",
                    error_type="stuck",
                    error_message="no answer before the deadline",
                    error_at="a.py:5",
                ),
            ),
            message="collate (a.py:3) gives no batch of 2 samples: stuck: no answer before the deadline",
            sample_ids=("a.png", "b.png"),
        ),
    )
    healthy = (
        Example(
            title="The first sample is the odd one: that is HR301",
            evidence=(
                reads(ok(image(3, 12, 8)), ok(image(3, 8, 12)), ok(image(3, 8, 12))),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(0,)),
            ),
        ),
        Example(
            title="A batch comes out",
            evidence=(reads(ok(image(3, 8, 8)), ok(image(3, 8, 8))), collated(image(2, 3, 8, 8))),
        ),
        Example(
            title="Shapes that differ: that is HR301",
            evidence=(
                reads(ok(image(3, 8, 8)), ok(image(1, 8, 8))),
                collated(error_type="RuntimeError", odd_ids=(1,)),
            ),
        ),
        Example(
            title="Captions of several lengths in a batch that comes out",
            evidence=(
                reads(
                    ok(values("text", 5, kind="string", dtype="str")), ok(values("text", 9, kind="string", dtype="str"))
                ),
                collated(),
            ),
        ),
    )


def _form(read: SampleRead, *, is_default: bool) -> tuple[tuple[object, ...], ...] | None:
    """What must agree between samples; None if the sample holds something that another rule names."""
    if any(view.kind == "none" or (is_default and view.kind not in JOINABLE_KINDS) for view in read.fields):
        return None
    # The length of a text does not matter to anyone who joins it.
    return tuple(
        (view.field, view.kind, view.dtype, None if view.kind in {"string", "bytes"} else view.shape)
        for view in read.fields
    )
