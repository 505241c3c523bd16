"""HR615 rank-failed: as processes of one group, a rank fails, or waits for ranks that do something else."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import RankFailure, RankFailures
from headrace.doctor.rule import Example, Finding, Fix, Rule

__all__ = ["RankFailed"]


class RankFailed(Rule):
    """HR615."""

    code = "HR615"
    name = "rank-failed"
    summary = "As processes of one group, a rank raises, ends, or waits in a collective that others do not call."
    rationale = """
        What a rank does before its first batch often depends on its number: rank 0 downloads, builds an index or splits
        the data, and the others wait for it in a barrier. If one rank raises, or a collective stands in a branch that not
        all ranks take, the others wait until the timeout of the process group, half an hour by default, and then show
        errors of their transport that name neither the rank nor the line.

        It is no fault if ranks do different work between two collectives that all of them call.
        """
    experiment = """
        With --rank-processes only: TARGET is made in as many processes as --ranks says, all in one gloo group with a
        short timeout, and each draws an epoch of its loader's order. A group that TARGET sets up is this one.
        """
    needs = (RankFailures,)
    fix = Fix(
        text="Let every rank reach every collective: what only rank 0 does stands between two calls that all ranks make.",
        safety="no change of the data",
        snippet="if dist.get_rank() == 0:\n"
        "    prepare()      # no collective in here\n"
        "dist.barrier()     # called by all ranks\n"
        "data = load()",
    )
    references = ("pytorch#1355",)

    def judge(self, seen: RankFailures) -> list[Finding]:
        """At most one finding: the rank that raised by itself; else the one that waits."""
        if not seen.failures:
            return []
        first = min(seen.failures, key=lambda one: (one.is_waiting, one.at is None, one.rank))
        others = [one for one in seen.failures if one is not first]
        return [
            Finding(
                message=_tell(first, seen),
                severity="error",
                confidence=0.95,
                basis="experiment",
                stage="load",
                where=first.at or "",
                evidence={
                    "world_size": seen.world_size,
                    "rank": first.rank,
                    "error": first.error,
                    "other_ranks": [f"rank {one.rank}: {one.error}" for one in others],
                },
            )
        ]

    sick = (
        Example(
            title="A shard that one rank does not have",
            evidence=(
                RankFailures(
                    world_size=3,
                    failures=(
                        RankFailure(rank=0, error="RuntimeError: Connection closed by peer", at=None, is_waiting=True),
                        RankFailure(
                            rank=1, error="FileNotFoundError: no shard for rank 1", at="train.py:24 in make_loader"
                        ),
                    ),
                ),
            ),
            message="rank 1 of 3 fails: FileNotFoundError: no shard for rank 1; rank 0 waits for it in vain",
        ),
        Example(
            title="A barrier in a branch of rank 0",
            evidence=(
                RankFailures(
                    world_size=2,
                    failures=(
                        RankFailure(
                            rank=0, error="RuntimeError: Timed out", at="train.py:19 in make_loader", is_waiting=True
                        ),
                    ),
                ),
            ),
            message="rank 0 of 2 waits in a collective that not all ranks call",
        ),
    )
    healthy = (
        Example(title="Both ranks came to their last batch", evidence=(RankFailures(world_size=2, failures=()),)),
        Example(title="So did all of eight", evidence=(RankFailures(world_size=8, failures=()),)),
    )


def _tell(first: RankFailure, seen: RankFailures) -> str:
    if first.is_waiting:
        return f"rank {first.rank} of {seen.world_size} waits in a collective that not all ranks call"
    waiting = [one.rank for one in seen.failures if one.is_waiting]
    text = f"rank {first.rank} of {seen.world_size} fails: {first.error}"
    if waiting:
        named = ", ".join(map(str, waiting))
        text += f"; rank {named} waits for it in vain" if len(waiting) == 1 else f"; ranks {named} wait for it in vain"
    return text
