"""HR611 replaced-sampler: the sampler that was chosen is gone, or nothing deals samples out to ranks."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import Ranks
from headrace.doctor.made_up.orders import ranks
from headrace.doctor.questions.ranks import draws_again
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

WRAP = Fix(
    text="Deal out what the chosen sampler draws: wrap it, instead of putting a plain distributed sampler in its place.",
    safety="changes which samples are drawn: the chosen ones again",
    snippet="class Dealt(Sampler):\n"
    "    def __init__(self, sampler, rank, world_size):\n"
    "        self.sampler = sampler\n"
    "        self.rank, self.world_size = rank, world_size\n"
    "\n"
    "    def __iter__(self):  # all ranks must draw the same: seed it alike\n"
    "        return itertools.islice(\n"
    "            self.sampler, self.rank, None, self.world_size\n"
    "        )",
)


class ReplacedSampler(Rule):
    """HR611."""

    code = "HR611"
    name = "replaced-sampler"
    summary = "A chosen sampler that a wrapper replaced, or a distributed script whose ranks each run the whole epoch."
    rationale = """
        To deal samples out to ranks a sampler is put in front of the data set, and whatever stood there before, such
        as weights against rare classes, is gone without a word. The opposite happens too: several ranks are set up,
        and the loader is the one of a single process, so that each rank runs through everything and the run takes as
        long as with one.

        It is no fault if every rank evaluates everything, or if a library's trainer puts its sampler in later. Draws
        with replacement on each rank are a way of their own and are not judged.
        """
    experiment = """
        TARGET is made again as each rank would make it, without a process group. The loaders that are made on the way
        are noted with their samplers, and the samples of all ranks are compared.
        """
    needs = (Ranks,)
    fix = Fix(
        text="Give the training loader a distributed sampler, and tell it the epoch.",
        safety="each rank gets its part of an epoch; epochs become shorter",
        snippet="sampler = DistributedSampler(dataset, shuffle=True)\n"
        "loader = DataLoader(dataset, batch_size=64, sampler=sampler)",
    )
    references = ("Lightning#1995", "Lightning#3716", "accelerate#2865", "pytorch#77154")

    def judge(self, seen: Ranks) -> list[Finding]:
        """At most one finding."""
        if seen.replaced is not None and seen.role != "evaluation":
            message = f"{seen.replaced} was chosen for this data set and is gone: the loader draws by {seen.sampler}"
            return [self._finding(seen, message, 0.85, WRAP)]
        rows = seen.num_rows
        is_whole = (
            not seen.deals_out
            and not seen.is_stream
            and bool(rows)
            and all(share.num_different == rows for share in seen.shares)
            and not draws_again(seen)
        )
        if not is_whole or seen.parallel_at is None or seen.framework is not None or seen.role == "evaluation":
            return []
        message = (
            f"each of {seen.world_size} ranks runs through all {count(rows or 0, 'sample')}: "
            f"{seen.sampler} deals nothing out"
        )
        return [self._finding(seen, message, 0.75, None)]

    @staticmethod
    def _finding(seen: Ranks, message: str, confidence: float, fix: Fix | None) -> Finding:
        return Finding(
            message=message,
            severity="warning",
            confidence=confidence,
            basis="experiment",
            stage="sampler",
            where=seen.sampler_at or seen.parallel_at or seen.sampler,
            evidence={
                "sampler": seen.sampler,
                "replaced": seen.replaced,
                "samples_per_rank": [share.num_samples for share in seen.shares],
                "num_rows": seen.num_rows,
            },
            fix=fix,
        )

    sick = (
        Example(
            title="Weights lost on the way to several ranks",
            evidence=(ranks(50, 50, replaced="WeightedRandomSampler"),),
            message="WeightedRandomSampler was chosen for this data set and is gone: the loader draws by DistributedSampler",
        ),
        Example(
            title="Several ranks, and a loader for one",
            evidence=(
                ranks(100, 100, shared=100, deals_out=False, sampler="RandomSampler", parallel_at="train.py:31"),
            ),
            message="each of 2 ranks runs through all 100 samples: RandomSampler deals nothing out",
        ),
    )
    healthy = (
        Example(title="A distributed sampler", evidence=(ranks(50, 50, parallel_at="train.py:31"),)),
        Example(
            title="Every rank evaluates everything",
            evidence=(ranks(100, 100, shared=100, deals_out=False, role="evaluation", parallel_at="train.py:31"),),
        ),
        Example(
            title="A library's trainer deals out later",
            evidence=(ranks(100, 100, shared=100, deals_out=False, parallel_at="train.py:31", framework="lightning"),),
        ),
    )
