"""HR609 uneven-ranks: ranks get different numbers of batches, so that the last steps wait for ever."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import Ranks
from headrace.doctor.made_up.orders import ranks
from headrace.doctor.rule import Example, Finding, Fix, Rule


class UnevenRanks(Rule):
    """HR609."""

    code = "HR609"
    name = "uneven-ranks"
    summary = "Ranks with different numbers of batches per epoch."
    rationale = """
        Every backward pass of a distributed run waits until all ranks have their gradient. A rank that has run out of
        batches does not come, and the others wait until a timeout, minutes later, names a collective and no cause. A
        part cut as `indices[rank::world_size]`, batches made by length, or shards of different sizes are enough.

        It is no fault if the script provides for it (`Join`), or in evaluation without collectives; there it is only
        mentioned.
        """
    experiment = """
        TARGET is made again as each rank would make it, without a process group, and its sampler is walked without
        reading samples; streams are read to their ends within the limits.
        """
    needs = (Ranks,)
    fix = Fix(
        text="Give every rank the same number of batches: pad or cut to a multiple of the number of ranks before "
        "dealing out.",
        safety="repeats or leaves out up to one batch per rank and epoch",
        snippet="usable = len(order) - len(order) % (num_ranks * batch_size)\nmine = order[:usable][rank::num_ranks]",
    )
    references = ("pytorch#141069", "Lightning#20404", "datasets#6437", "PyMarlin#80", "datasets#6623")

    def judge(self, seen: Ranks) -> list[Finding]:
        """At most one finding."""
        numbers = [share.num_batches for share in seen.shares]
        if not seen.deals_out or not seen.is_complete or len(set(numbers)) < 2:
            return []
        if seen.joins_at is not None or seen.framework is not None:
            return []
        shown = ", ".join(f"{number:,}" for number in numbers)
        is_training = seen.role != "evaluation"
        consequence = "the longer ones wait for a rank that has finished" if is_training else "collectives would hang"
        return [
            Finding(
                message=f"ranks 0 to {len(numbers) - 1} get {shown} batches: {consequence}",
                severity="info" if not is_training else "error" if seen.parallel_at else "warning",
                confidence=0.9,
                basis="experiment",
                stage="sampler" if not seen.is_stream else "read",
                where=seen.sampler_at or seen.sampler,
                evidence={
                    "batches_per_rank": numbers,
                    "samples_per_rank": [share.num_samples for share in seen.shares],
                    "world_size": seen.world_size,
                },
            )
        ]

    sick = (
        Example(
            title="A part cut with a step",
            evidence=(ranks(51, 50, num_batches=(6, 5), sampler="EveryNth", sampler_at="data.py:7"),),
            message="ranks 0 to 1 get 6, 5 batches: the longer ones wait for a rank that has finished",
        ),
        Example(
            title="Shards of different sizes in a distributed script",
            evidence=(ranks(100, 97, num_batches=(100, 97), is_stream=True, parallel_at="train.py:5"),),
            message="ranks 0 to 1 get 100, 97 batches: the longer ones wait for a rank that has finished",
        ),
    )
    healthy = (
        Example(title="Equal parts", evidence=(ranks(50, 50),)),
        Example(
            title="A script that joins uneven inputs",
            evidence=(ranks(51, 50, num_batches=(6, 5), joins_at="train.py:9"),),
        ),
        Example(
            title="A loader that is not dealt out",
            evidence=(ranks(100, 90, num_batches=(10, 9), deals_out=False),),
        ),
    )
