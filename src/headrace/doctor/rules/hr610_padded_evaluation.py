"""HR610 padded-evaluation: dealing an evaluation set out to ranks repeats some samples, or loses some."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import Padding, Ranks
from headrace.doctor.made_up.orders import ranks
from headrace.doctor.questions.ranks import draws_again, is_padding, num_repeats
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import count, verb


class PaddedEvaluation(Rule):
    """HR610."""

    code = "HR610"
    name = "padded-evaluation"
    summary = "Evaluation samples that are counted twice, or left out, so that all ranks are equally long."
    rationale = """
        Torch's distributed sampler makes all ranks equally long by repeating the first samples, or with
        `drop_last=True` by leaving out the last. In training nobody minds. In evaluation the score counts some samples
        twice or not at all, differs between numbers of ranks, and cannot be compared with that of one process.

        It is no fault in training, or if the script leaves the repeats out again (a gather that knows the length).
        If only other numbers of ranks than the one looked at would repeat samples, it is mentioned.
        """
    experiment = """
        TARGET is made again as each rank would make it, without a process group, and the samples of all ranks are
        counted; no sample is read.
        """
    needs = (Ranks,)
    fix = Fix(
        text="Evaluate without padding: give each rank its slice, whatever its length, and gather results with their "
        "sample numbers.",
        safety="each sample is counted once; ranks may differ by one sample, so no collective inside the loop",
        snippet="mine = range(rank, len(dataset), world_size)\n"
        "loader = DataLoader(Subset(dataset, mine), batch_size=64)",
    )
    references = ("pytorch#25162", "pytorch#22584", "rf-detr#1507", "AReaL#1100", "composer#2218")

    def judge(self, seen: Ranks) -> list[Finding]:
        """At most one finding."""
        is_candidate = seen.role == "evaluation" or (seen.role is None and seen.shuffles is False)
        if not is_candidate or not seen.deals_out or seen.is_stream or draws_again(seen):
            return []
        if seen.counts_once_at is not None or seen.framework is not None or not seen.is_complete:
            return []
        now = self._now(seen)
        if now is not None:
            severity: Severity = "warning" if seen.role == "evaluation" else "info"
            return [self._finding(seen, now, severity)]
        later = next((one for one in seen.paddings if one.world_size != seen.world_size), None)
        return [] if later is None else [self._finding(seen, later, "info")]

    @staticmethod
    def _now(seen: Ranks) -> Padding | None:
        rows = seen.num_rows or 0
        lost, repeated = rows - seen.num_union, num_repeats(seen)
        is_lost = 0 < lost < seen.world_size * (seen.batch_size or 1) and not repeated
        if not is_lost and not is_padding(seen):
            return None
        return Padding(world_size=seen.world_size, num_repeated=repeated, num_lost=max(lost, 0))

    @staticmethod
    def _finding(seen: Ranks, padding: Padding, severity: Severity) -> Finding:
        number = padding.num_repeated or padding.num_lost
        fate = "evaluated twice" if padding.num_repeated else "never evaluated"
        return Finding(
            message=f"with {padding.world_size} ranks {number:,} of {count(seen.num_rows or 0, 'sample')} "
            f"{verb(number, 'is', 'are')} {fate}: {seen.sampler} makes all ranks equally long",
            severity=severity,
            confidence=0.9 if severity == "warning" else 0.6,
            basis="experiment",
            stage="sampler",
            where=seen.sampler_at or seen.sampler,
            evidence={
                "world_size": padding.world_size,
                "num_rows": seen.num_rows,
                "num_repeated": padding.num_repeated,
                "num_lost": padding.num_lost,
            },
        )

    sick = (
        Example(
            title="101 samples, four ranks",
            evidence=(ranks(26, 26, 26, 26, union=101, num_rows=101, role="evaluation", shuffles=False),),
            message="with 4 ranks 3 of 101 samples are evaluated twice: DistributedSampler makes all ranks equally long",
        ),
        Example(
            title="The last sample is dropped",
            evidence=(ranks(50, 50, num_rows=101, role="evaluation", drop_last=True, shuffles=False),),
            message="with 2 ranks 1 of 101 samples is never evaluated: DistributedSampler makes all ranks equally long",
        ),
        Example(
            title="Two ranks divide it, four would not: only mentioned",
            evidence=(
                ranks(
                    51,
                    51,
                    role="evaluation",
                    shuffles=False,
                    paddings=(Padding(world_size=4, num_repeated=2, num_lost=0),),
                ),
            ),
            message="with 4 ranks 2 of 102 samples are evaluated twice: DistributedSampler makes all ranks equally long",
        ),
    )
    healthy = (
        Example(
            title="Training is padded",
            evidence=(ranks(51, 51, shared=1, num_rows=101, role="train"),),
        ),
        Example(
            title="A script that leaves the repeats out",
            evidence=(ranks(51, 51, shared=1, num_rows=101, role="evaluation", counts_once_at="evaluate.py:30"),),
        ),
        Example(
            title="A number of samples that every usual number of ranks divides",
            evidence=(ranks(24, 24, role="evaluation", shuffles=False),),
        ),
    )
