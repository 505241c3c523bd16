"""HR613 wrong-sampler-weights: a weighted sampler whose weights do not fit the samples."""

from __future__ import annotations

from headrace.doctor.evidence.orders import Orders, Weights
from headrace.doctor.made_up.orders import orders
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import count, listing

SHORT = 0.02
"""Share of the data set below which an epoch of draws is too short to be meant, if it also equals a number of classes
or does not fill a batch."""


class WrongSamplerWeights(Rule):
    """HR613."""

    code = "HR613"
    name = "wrong-sampler-weights"
    summary = "Weights of a sampler that are one per class instead of one per sample, leave classes out, or do nothing."
    rationale = """
        `WeightedRandomSampler` takes one weight per sample. Given one per class, it draws only the first few rows of
        the data set, for ever, and training seems to go very well. Weights of 0 for a whole class hide it. Without
        replacement and with as many draws as samples, every sample comes once whatever its weight: a plain shuffle.

        It is no fault to draw fewer samples than there are, as a short epoch, or to leave single samples out by a
        weight of 0.
        """
    experiment = """
        The weights are counted and held against the number of samples and, where the data set says its classes
        without reading samples, against the classes.
        """
    needs = (Orders,)
    fix = Fix(
        text="Give each sample the weight of its class.",
        safety="changes which samples are drawn, and how often",
        snippet="targets = torch.as_tensor(dataset.targets)\n"
        "per_class = 1.0 / torch.bincount(targets)\n"
        "weights = per_class[targets]  # one per sample\n"
        "sampler = WeightedRandomSampler(weights, num_samples=len(weights))",
    )
    references = ("soundbay#49", "superpoint_graph#175", "pytorch#116117", "CenterNet-plus#18")

    def judge(self, seen: Orders) -> list[Finding]:
        """At most one finding, the gravest."""
        if seen.weights is None:
            return []
        said = _fault(seen.weights, seen)
        if said is None:
            return []
        message, severity = said
        return [
            Finding(
                message=message,
                severity=severity,
                confidence={"error": 1.0, "warning": 0.85}.get(severity, 0.6),
                basis="experiment",
                stage="sampler",
                where=seen.sampler_at or seen.sampler,
                evidence={
                    "num_weights": seen.weights.num_weights,
                    "num_draws": seen.weights.num_draws,
                    "num_rows": seen.num_rows,
                    "num_labels": seen.weights.num_labels,
                    "replacement": seen.weights.replacement,
                    "num_different": seen.passes[0].num_different if seen.passes else None,
                },
            )
        ]

    sick = (
        Example(
            title="One weight per class",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(num_weights=5, num_draws=100, replacement=True, num_labels=5),
                ),
            ),
            message="5 weights for 100 samples, as many as there are classes: only rows 0 to 4 are ever drawn",
        ),
        Example(
            title="Weights of another split",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(num_weights=120, num_draws=120, replacement=True),
                ),
            ),
            message="120 weights for 100 samples: rows from 100 on are drawn and do not exist",
        ),
        Example(
            title="A class that is never drawn",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(
                        num_weights=100, num_draws=100, replacement=True, num_labels=3, never_drawn=("dog",)
                    ),
                ),
            ),
            message="every sample of class dog has weight 0 and is never drawn",
        ),
        Example(
            title="All samples without replacement",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(num_weights=100, num_draws=100, replacement=False, num_labels=3),
                ),
            ),
            message="100 draws without replacement from 100 samples take each once: the weights have no effect",
        ),
        Example(
            title="As many draws as classes",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(num_weights=100, num_draws=3, replacement=True, num_labels=3),
                ),
            ),
            message="3 draws per epoch from 100 samples, as many as there are classes: an epoch is 3 samples long",
        ),
    )
    healthy = (
        Example(
            title="One weight per sample",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(num_weights=100, num_draws=100, replacement=True, num_labels=3),
                ),
            ),
        ),
        Example(
            title="A short epoch on purpose",
            evidence=(
                orders(
                    sampler="WeightedRandomSampler",
                    weights=Weights(num_weights=100, num_draws=40, replacement=False, num_labels=3),
                ),
            ),
        ),
        Example(title="A sampler without weights", evidence=(orders(),)),
    )


def _fault(weights: Weights, seen: Orders) -> tuple[str, Severity] | None:
    """What is wrong, the gravest first."""
    number, draws, rows, classes = weights.num_weights, weights.num_draws, seen.num_rows, weights.num_labels
    if rows is not None and number < rows:
        as_many = ", as many as there are classes" if number == classes else ""
        drawn = "only row 0 is ever drawn" if number == 1 else f"only rows 0 to {number - 1:,} are ever drawn"
        return f"{count(number, 'weight')} for {count(rows, 'sample')}{as_many}: {drawn}", "error"
    if rows is not None and number > rows:
        return (
            f"{number:,} weights for {count(rows, 'sample')}: rows from {rows:,} on are drawn and do not exist",
            "error",
        )
    if weights.never_drawn:
        names = listing(weights.never_drawn)
        kind = "class" if len(weights.never_drawn) == 1 else "classes"
        return f"every sample of {kind} {names} has weight 0 and is never drawn", "warning"
    if weights.replacement is False and draws >= number > 1 and not weights.is_uniform:
        return (
            f"{draws:,} draws without replacement from {count(number, 'sample')} take each once: the weights have no effect",
            "warning",
        )
    if rows is None or draws >= rows:
        return None
    if draws == classes or (draws <= SHORT * rows and draws < (seen.batch_size or 1)):
        as_many = ", as many as there are classes" if draws == classes else ""
        drawn = f"{count(draws, 'draw')} per epoch from {count(rows, 'sample')}{as_many}"
        return f"{drawn}: an epoch is {count(draws, 'sample')} long", "warning"
    return None
