"""HR608 overlapping-ranks: ranks deliver the same samples instead of a part each."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import Ranks
from headrace.doctor.made_up.orders import ranks
from headrace.doctor.questions.ranks import draws_again, is_padding, num_repeats, share_text
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

MOST = 0.9
"""Share of a rank's beginning of a stream that another one has too: the same stream, and not a chance meeting."""

SPLIT_STREAM = Fix(
    text="Let each rank, and each worker in it, take its own part of the stream.",
    safety="each sample once per epoch; the order over ranks changes",
    snippet="def __iter__(self):\n"
    "    rank, ranks = dist.get_rank(), dist.get_world_size()\n"
    "    info = torch.utils.data.get_worker_info()\n"
    "    worker, workers = (info.id, info.num_workers) if info else (0, 1)\n"
    "    own = rank * workers + worker\n"
    "    for number, record in enumerate(self.records()):\n"
    "        if number % (ranks * workers) == own:\n"
    "            yield record",
)


class OverlappingRanks(Rule):
    """HR608."""

    code = "HR608"
    name = "overlapping-ranks"
    summary = "Ranks that share samples although something deals them out, or that all read the whole stream."
    rationale = """
        Ranks cut their parts out of one permutation. If each draws a permutation of its own (another seed, the
        process's own random state), the parts overlap and leave gaps: some samples come twice in an epoch, others never.
        A stream that does not ask for the rank is read whole by each: an epoch is as many times longer as there are
        ranks, and all ranks compute the same gradient.

        It is no fault if a few samples repeat so that all ranks are equally long (HR610 speaks of evaluation), or if
        samples are drawn with replacement, so that ranks meet by chance. Samples of streams are told apart by content.
        """
    experiment = """
        TARGET is made again as each rank would make it: RANK and WORLD_SIZE are set, torch.distributed answers
        accordingly, there is no process group. Samplers are walked without reading samples; streams are read within
        the limits. Each rank starts from a random state of its own, as processes do.
        """
    needs = (Ranks,)
    fix = Fix(
        text="Draw the permutation from the same seed on all ranks (seed and epoch, never the rank), then take every "
        "n-th of it.",
        safety="each sample once per epoch; changes which rank sees which sample",
        snippet="def __iter__(self):\n"
        "    generator = torch.Generator()\n"
        "    generator.manual_seed(self.seed + self.epoch)  # not the rank\n"
        "    order = torch.randperm(len(self.data), generator=generator)\n"
        "    yield from order[self.rank :: self.num_replicas].tolist()",
    )
    references = ("LongLive#71", "streaming#324", "lhotse#707", "datasets#6623")

    def judge(self, seen: Ranks) -> list[Finding]:
        """At most one finding."""
        repeats = num_repeats(seen)
        is_split_up = seen.deals_out or (seen.is_stream and seen.parallel_at is not None)
        if not is_split_up or not repeats or draws_again(seen) or is_padding(seen) or seen.framework is not None:
            return []
        shared, one, other = _most_shared(seen)
        if not shared:
            return []
        smallest = min(seen.shares[one].num_different, seen.shares[other].num_different)
        if not seen.is_complete and shared < MOST * smallest:
            return []
        kind = "samples" if seen.is_complete else f"of their first {count(smallest, 'sample')}"
        message = f"ranks {one} and {other} share {shared:,} {kind}"
        if seen.is_complete:
            message = f"ranks {one} and {other} share {shared:,} of {count(smallest, 'sample')}"
            rows = seen.num_rows if not seen.is_stream else None
            together = "together they" if seen.world_size == 2 else f"all {seen.world_size} together"
            if rows and seen.num_union < rows:
                message += f"; {together} see {share_text(seen.num_union, rows)} of the data set"
            elif shared == smallest:
                message += ": each reads everything"
        return [
            Finding(
                message=message,
                severity="error" if seen.is_complete else "warning",
                confidence=0.95 if seen.is_complete else 0.75,
                basis="experiment",
                stage="sampler" if not seen.is_stream else "read",
                where=seen.sampler_at or seen.sampler,
                evidence={
                    "world_size": seen.world_size,
                    "samples_per_rank": [share.num_samples for share in seen.shares],
                    "overlap": [list(row) for row in seen.overlap],
                    "num_union": seen.num_union,
                    "num_rows": seen.num_rows,
                },
                fix=SPLIT_STREAM if seen.is_stream else None,
            )
        ]

    sick = (
        Example(
            title="Each rank draws a permutation of its own",
            evidence=(ranks(50, 50, shared=21, num_rows=100, sampler="ShardSampler", sampler_at="data.py:7"),),
            message="ranks 0 and 1 share 21 of 50 samples; together they see 79% of the data set",
        ),
        Example(
            title="A stream that does not ask for the rank",
            evidence=(
                ranks(
                    100,
                    100,
                    shared=100,
                    num_rows=None,
                    sampler="LineStream",
                    deals_out=False,
                    is_stream=True,
                    by="content",
                    parallel_at="train.py:12",
                ),
            ),
            message="ranks 0 and 1 share 100 of 100 samples: each reads everything",
        ),
        Example(
            title="A long stream of which the beginnings are the same",
            evidence=(
                ranks(
                    200,
                    200,
                    shared=200,
                    num_rows=None,
                    sampler="LineStream",
                    deals_out=False,
                    is_stream=True,
                    is_complete=False,
                    parallel_at="train.py:12",
                ),
            ),
            message="ranks 0 and 1 share 200 of their first 200 samples",
        ),
    )
    healthy = (
        Example(title="A part for each rank", evidence=(ranks(50, 50),)),
        Example(
            title="One sample repeated so that both are equally long", evidence=(ranks(51, 51, shared=1, num_rows=101),)
        ),
        Example(
            title="A stream in a script for one process",
            evidence=(ranks(100, 100, shared=100, num_rows=None, deals_out=False, is_stream=True),),
        ),
    )


def _most_shared(seen: Ranks) -> tuple[int, int, int]:
    """The two ranks that share most: (samples, rank, other rank)."""
    pairs = [
        (shared, one, other) for one, row in enumerate(seen.overlap) for other, shared in enumerate(row) if other > one
    ]
    return max(pairs, key=lambda pair: (pair[0], -pair[1], -pair[2]), default=(0, 0, 0))
