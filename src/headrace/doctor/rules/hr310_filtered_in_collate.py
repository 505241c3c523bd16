"""HR310 filtered-in-collate: samples that the collate function leaves out without a word."""

from __future__ import annotations

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.batches import Dropping
from headrace.doctor.made_up import loader
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, named

OWN = "skip_bad (train.py:8)"


class FilteredInCollate(Rule):
    """HR310."""

    code = "HR310"
    name = "filtered-in-collate"
    summary = "A collate function that leaves samples out: batches get smaller, and nobody counts what is missing."
    rationale = """
        `batch = [s for s in batch if s is not None]` keeps a run alive, and hides how much of the data is never seen:
        1 % or 40 %, the loop cannot tell. Batches vary in size, so that losses weigh samples differently; a batch of
        nothing but such samples is empty, and fails, or trains on nothing. In distributed training ranks get batches of
        different sizes, or none.

        It is no fault if collate would leave samples out but all of them pass, or if several samples are packed into
        fewer rows: then each of them has a part in the batch.
        """
    experiment = """
        Each sample is joined with one that stays, under the same random state: if the batch is the same as without the
        sample, the sample is left out. Then one that is left out is joined alone.
        """
    needs = (Dropping, LoaderFacts)
    fix = Fix(
        text="Leave such samples out before there are batches: filter the list of records once, or let the loader skip "
        "what raises, counted and listed by id.",
        safety="batches keep their size; the same samples are left out, but known",
        snippet="import headrace as hr\n\n"
        "# in __getitem__: raise ValueError(...) instead of returning None\n"
        "policy = hr.Skip(max_rate=0.01)\n"
        "loader = hr.DataLoader(dataset, batch_size=64, on_error=policy)\n"
        "# after an epoch: loader.ledger and loader.quarantine say which",
    )
    references = ("pytorch#74337", "pytorch#57429", "kits19-challenge#7", "YOLOX#1523")

    def judge(self, seen: Dropping, facts: LoaderFacts) -> list[Finding]:
        """At most one finding."""
        if not seen.dropped:
            return []
        num, tested = len(seen.dropped), seen.num_tested
        kind = (
            f", {seen.num_none} of them None" if 0 < seen.num_none < num else ", all of them None" * bool(seen.num_none)
        )
        size = "" if facts.batch_size is None else f" of {facts.batch_size}"
        alone = {
            "None": "a batch of nothing else becomes None",
            "a batch of 0": "a batch of nothing else is empty",
            "a batch": "",
        }.get(seen.alone or "", f"a batch of nothing else fails ({seen.alone})")
        return [
            Finding(
                message=f"{seen.collate} leaves out {count(num, 'sample')} of {tested:,} that were tried {named(seen.dropped)}"
                f"{kind}: batches{size} come out smaller{f', and {alone}' * bool(alone)}",
                severity="warning",
                confidence=1.0,
                basis="experiment",
                stage="collate",
                sample_ids=seen.dropped,
                where=seen.collate,
                evidence={
                    "num_tested": tested,
                    "num_dropped": num,
                    "share": round(num / tested, 4),
                    "num_none": seen.num_none,
                    "alone": seen.alone,
                },
            )
        ]

    sick = (
        Example(
            title="None is filtered",
            evidence=(
                Dropping(
                    collate=OWN, num_tested=40, dropped=(3, 17), num_none=2, alone="IndexError: list index out of range"
                ),
                loader(batch_size=8),
            ),
            message="skip_bad (train.py:8) leaves out 2 samples of 40 that were tried (first sample 3), all of them None: "
            "batches of 8 come out smaller, and a batch of nothing else fails (IndexError: list index out of range)",
            sample_ids=(3, 17),
        ),
        Example(
            title="Short texts are filtered",
            evidence=(
                Dropping(collate=OWN, num_tested=40, dropped=(5,), num_none=0, alone="a batch of 0"),
                loader(batch_size=None),
            ),
            message="skip_bad (train.py:8) leaves out 1 sample of 40 that were tried (sample 5): batches come out smaller, "
            "and a batch of nothing else is empty",
            sample_ids=(5,),
        ),
    )
    healthy = (
        Example(
            title="Everything stays",
            evidence=(Dropping(collate=OWN, num_tested=40, dropped=(), num_none=0, alone=None), loader()),
        ),
        Example(
            title="No pair of samples could be joined, so nothing was tried",
            evidence=(Dropping(collate=OWN, num_tested=0, dropped=(), num_none=0, alone=None), loader()),
        ),
    )
