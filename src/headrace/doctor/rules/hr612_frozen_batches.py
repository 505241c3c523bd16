"""HR612 frozen-batches: the same samples stand together in a batch in every epoch."""

from __future__ import annotations

from headrace.doctor.evidence.orders import Orders
from headrace.doctor.made_up.orders import orders, passes
from headrace.doctor.questions.orders import batches_repeat, num_orders, order_repeats, waits_for_epoch
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count


class FrozenBatches(Rule):
    """HR612."""

    code = "HR612"
    name = "frozen-batches"
    summary = "Batches that hold the same samples in every epoch although the order is drawn at random."
    rationale = """
        A batch sampler that forms its batches when it is made, and later only shuffles their order, gives the model
        the same groups again and again. Batch statistics and contrastive negatives never change, the loss swings with
        the batch, and the noise that helps training is smaller than it looks.

        It is no fault in evaluation, for batches in a fixed order, or for batches that are groups by nature, such as
        one recording each: if their sizes differ and nothing random went into forming them, it is only mentioned.
        """
    experiment = """
        The batch sampler is walked for three epochs, without reading samples, and the sets of samples in its batches
        are compared.
        """
    needs = (Orders,)
    fix = Fix(
        text="Form the batches anew in each pass: shuffle the samples (within buckets of similar length, if need be) "
        "before they are cut into batches.",
        safety="changes which samples stand together from the second epoch on",
        snippet="def __iter__(self):\n"
        "    for bucket in self.buckets:\n"
        "        random.shuffle(bucket)\n"
        "    batches = [\n"
        "        bucket[start : start + self.batch_size]\n"
        "        for bucket in self.buckets\n"
        "        for start in range(0, len(bucket), self.batch_size)\n"
        "    ]\n"
        "    random.shuffle(batches)\n"
        "    yield from batches",
    )
    references = ("lhotse#562", "diffusers#13353", "diffusers#13712", "audio#3068", "allennlp#3985")

    def judge(self, seen: Orders) -> list[Finding]:
        """At most one finding."""
        if seen.role == "evaluation" or waits_for_epoch(seen) or not batches_repeat(seen):
            return []
        is_same_order = order_repeats(seen)
        if is_same_order and not (seen.groups_batches and seen.draws == "once"):
            return []
        is_natural = not seen.batches_are_even and seen.draws == "each-pass"
        what = "in the same order" if is_same_order else "only their order changes"
        first = seen.passes[0]
        return [
            Finding(
                message=f"{seen.sampler} makes the same {first.num_batches:,} batches in "
                f"{count(len(seen.passes), 'epoch')}, {what}",
                severity="info" if is_natural else "warning",
                confidence=0.6 if is_natural else 0.85,
                basis="experiment",
                stage="sampler",
                where=seen.sampler_at,
                evidence={
                    "sampler": seen.sampler,
                    "num_batches": first.num_batches,
                    "different_orders": num_orders(seen),
                },
            )
        ]

    sick = (
        Example(
            title="Batches formed once, shuffled as a whole",
            evidence=(
                orders(
                    sampler="LengthBatches",
                    sampler_at="data.py:8",
                    groups_batches=True,
                    passes=passes("a", "b", "c", batches="xxx"),
                ),
            ),
            message="LengthBatches makes the same 10 batches in 3 epochs, only their order changes",
        ),
        Example(
            title="Batches drawn once, and always in the same order",
            evidence=(orders(sampler="RandomGroups", groups_batches=True, draws="once", passes=passes("a", "a", "a")),),
            message="RandomGroups makes the same 10 batches in 3 epochs, in the same order",
        ),
    )
    healthy = (
        Example(title="New batches each epoch", evidence=(orders(sampler="LengthBatches", groups_batches=True),)),
        Example(
            title="Fixed batches in a fixed order",
            evidence=(orders(sampler="Grid", groups_batches=True, draws="never", passes=passes("a", "a", "a")),),
        ),
        Example(
            title="Evaluation with batches by length",
            evidence=(
                orders(
                    sampler="LengthBatches",
                    groups_batches=True,
                    passes=passes("a", "b", "c", batches="xxx"),
                    role="evaluation",
                ),
            ),
        ),
        Example(
            title="Single samples",
            evidence=(orders(batch_size=1, passes=passes("a", "b", "c", batches="xxx", batch_size=1)),),
        ),
    )
