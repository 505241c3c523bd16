"""HR607 epoch-not-set: a sampler that shuffles by the epoch is never told the epoch."""

from __future__ import annotations

from headrace.doctor.evidence.orders import Orders
from headrace.doctor.made_up.orders import orders, passes
from headrace.doctor.questions.orders import num_orders, waits_for_epoch
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count


class EpochNotSet(Rule):
    """HR607."""

    code = "HR607"
    name = "epoch-not-set"
    summary = "A sampler with set_epoch that nobody calls, so that every epoch has the same order."
    rationale = """
        Samplers for several ranks cannot take their shuffle from the process: all ranks must draw the same
        permutation. They make it from a seed and the epoch, and the epoch has to be told. If it is not, every epoch
        has the order of the first, each rank sees the same part of the data for ever, and batches never mix anew.
        Nothing fails; the model is only worse.

        It is no fault if the order is meant to be fixed (`shuffle=False`, evaluation), or if a library's trainer
        tells the sampler itself. If the source around the loader holds no loop over epochs, somebody else may call
        `set_epoch`; then it is only mentioned.
        """
    experiment = """
        The sampler is walked for three epochs, with `set_epoch` called where the source calls it, and twice more with
        different epochs to see whether the order depends on them. No sample is read, no process group is needed.
        """
    needs = (Orders,)
    fix = Fix(
        text="Tell the sampler the epoch at the start of each one.",
        safety="changes the order of samples from the second epoch on",
        snippet="for epoch in range(num_epochs):\n"
        "    loader.sampler.set_epoch(epoch)  # or loader.batch_sampler\n"
        "    for batch in loader:\n"
        "        ...",
    )
    references = (
        "pytorch#31771",
        "DALLE-pytorch#230",
        "ParallelWaveGAN#177",
        "distributed_tutorial#5",
        "taglets#28",
        "cosmos-rl#609",
    )

    def judge(self, seen: Orders) -> list[Finding]:
        """At most one finding."""
        if seen.role == "evaluation" or seen.framework is not None or not waits_for_epoch(seen):
            return []
        if seen.constant_epoch_at is not None:
            why, is_certain = "set_epoch gets the same number each time", True
            where: str | None = seen.constant_epoch_at
        elif seen.epoch_loop_at is not None:
            why, where, is_certain = "the loop over epochs never calls set_epoch", seen.epoch_loop_at, True
        else:
            why, where, is_certain = "set_epoch was not called; no loop over epochs was found that could", None, False
        return [
            Finding(
                message=f"{seen.set_epoch_of} gives the same order in {count(len(seen.passes), 'epoch')}: {why}",
                severity="error" if is_certain else "info",
                confidence=0.95 if is_certain else 0.6,
                basis="experiment",
                stage="sampler",
                where=where,
                evidence={
                    "sampler": seen.sampler,
                    "set_epoch_of": seen.set_epoch_of,
                    "different_orders": num_orders(seen),
                    "order_follows_epoch": seen.order_follows_epoch,
                },
            )
        ]

    sick = (
        Example(
            title="A loop over epochs that does not tell the sampler",
            evidence=(
                orders(
                    sampler="DistributedSampler",
                    passes=passes("a", "a", "a"),
                    set_epoch_of="DistributedSampler",
                    order_follows_epoch=True,
                    epoch_loop_at="train.py:40",
                ),
            ),
            message="DistributedSampler gives the same order in 3 epochs: the loop over epochs never calls set_epoch",
        ),
        Example(
            title="A batch sampler that is told epoch 0 each time",
            evidence=(
                orders(
                    sampler="BucketBatches",
                    passes=passes("a", "a", "a"),
                    set_epoch_of="BucketBatches",
                    order_follows_epoch=True,
                    epoch_loop_at="train.py:40",
                    constant_epoch_at="train.py:41",
                ),
            ),
            message="BucketBatches gives the same order in 3 epochs: set_epoch gets the same number each time",
        ),
        Example(
            title="The loop stands in code that was not found: only mentioned",
            evidence=(
                orders(
                    sampler="DistributedSampler",
                    passes=passes("a", "a", "a"),
                    set_epoch_of="DistributedSampler",
                    order_follows_epoch=True,
                ),
            ),
            message="DistributedSampler gives the same order in 3 epochs: set_epoch was not called; no loop over epochs "
            "was found that could",
        ),
    )
    healthy = (
        Example(
            title="A sampler that is told the epoch",
            evidence=(
                orders(
                    sampler="DistributedSampler",
                    set_epoch_of="DistributedSampler",
                    epochs_told=True,
                    order_follows_epoch=True,
                    epoch_loop_at="train.py:40",
                ),
            ),
        ),
        Example(
            title="A distributed sampler that does not shuffle",
            evidence=(
                orders(
                    sampler="DistributedSampler",
                    passes=passes("a", "a", "a"),
                    is_sequential=True,
                    set_epoch_of="DistributedSampler",
                    order_follows_epoch=False,
                    epoch_loop_at="train.py:40",
                ),
            ),
        ),
        Example(
            title="A library's trainer tells the epoch",
            evidence=(
                orders(
                    sampler="DistributedSampler",
                    passes=passes("a", "a", "a"),
                    set_epoch_of="DistributedSampler",
                    order_follows_epoch=True,
                    epoch_loop_at="train.py:40",
                    framework="lightning",
                ),
            ),
        ),
    )
