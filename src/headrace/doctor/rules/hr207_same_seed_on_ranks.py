"""HR207 same-seed-on-ranks: all ranks draw the same random augmentations."""

from __future__ import annotations

from headrace.doctor.evidence.ranks import RankSeeds
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, verb


def _seeds(**more: object) -> RankSeeds:
    facts: dict[str, object] = {"num_workers": 2, "seeds": (7, 7), "num_read": 3, "num_random": 3, "num_equal": 3}
    return RankSeeds(**{**facts, **more})  # type: ignore[arg-type]


class SameSeedOnRanks(Rule):
    """HR207."""

    code = "HR207"
    name = "same-seed-on-ranks"
    summary = "Ranks whose workers start from the same seed, so that all draw the same augmentations."
    rationale = """
        Torch seeds workers from the random state of their process. A script that seeds every rank with the same number
        gives worker 0 of all ranks one stream: the k-th sample of each rank gets the same crop, the same flip, the same
        noise. Eight accelerators then see as many different augmentations as one.

        It is no fault if preparation is not random, if ranks are seeded with their rank, or if samplers are seeded
        alike, as they must be. A model may be initialised under one seed on all ranks; seed again afterwards.
        """
    experiment = """
        TARGET is made as rank 0 and as rank 1. Three rows are prepared in the random state that worker 0 (or the
        process, without workers) has on each, the loader's worker_init_fn included, and once from another seed. A
        seeding that only the training function runs is read in the source and repeated.
        """
    needs = (RankSeeds,)
    fix = Fix(
        text="Put the rank into the seed, after the model was made.",
        safety="changes augmentations on all ranks but the first",
        snippet="torch.manual_seed(seed + dist.get_rank())\n"
        "np.random.seed(seed + dist.get_rank())\n"
        "random.seed(seed + dist.get_rank())",
    )
    references = ("transformers#37932", "PaddleClas#2497", "detr#297", "deit#150", "detectron2#4438")

    def judge(self, seen: RankSeeds) -> list[Finding]:
        """At most one finding."""
        if not seen.num_random or seen.num_equal < seen.num_random:
            return []
        if seen.role == "evaluation" or seen.framework is not None:
            return []
        who = "worker 0 of ranks 0 and 1" if seen.num_workers else "ranks 0 and 1"
        alike = "prepares them alike" if seen.num_workers else "prepare them alike"
        by = f", although {seen.init} is its worker_init_fn" if seen.init else ""
        return [
            Finding(
                message=f"{count(seen.num_random, 'sample')} {verb(seen.num_random, 'is', 'are')} prepared at random, "
                f"and {who} {alike}: same seed on all ranks{by}",
                severity="warning",
                confidence=0.95 if seen.is_executed else 0.75,
                basis="experiment" if seen.is_executed else "static",
                stage="transform",
                where=seen.seeded_at,
                evidence={
                    "seeds_are_equal": seen.seeds[0] == seen.seeds[1],
                    "num_workers": seen.num_workers,
                    "num_read": seen.num_read,
                    "num_random": seen.num_random,
                    "is_executed": seen.is_executed,
                },
            )
        ]

    sick = (
        Example(
            title="One seed for all ranks",
            evidence=(_seeds(seeded_at="train.py:10"),),
            message="3 samples are prepared at random, and worker 0 of ranks 0 and 1 prepares them alike: same seed on "
            "all ranks",
        ),
        Example(
            title="A worker_init_fn that does not know the rank",
            evidence=(_seeds(init="seed_worker", num_random=2, num_equal=2),),
            message="2 samples are prepared at random, and worker 0 of ranks 0 and 1 prepares them alike: same seed on "
            "all ranks, although seed_worker is its worker_init_fn",
        ),
        Example(
            title="Without workers",
            evidence=(_seeds(num_workers=0, is_executed=False, seeded_at="train.py:10"),),
            message="3 samples are prepared at random, and ranks 0 and 1 prepare them alike: same seed on all ranks",
        ),
    )
    healthy = (
        Example(title="The rank is in the seed", evidence=(_seeds(seeds=(7, 8), num_equal=0),)),
        Example(title="Random evaluation", evidence=(_seeds(role="evaluation"),)),
        Example(title="One seed, and nothing random", evidence=(_seeds(num_random=0, num_equal=0),)),
    )
