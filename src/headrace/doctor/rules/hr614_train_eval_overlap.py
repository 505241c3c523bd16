"""HR614 train-eval-overlap: samples that are both trained and evaluated on."""

from __future__ import annotations

from headrace.doctor.evidence.splits import SplitOverlap
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording import count, listing

__all__ = ["TrainEvalOverlap"]


class TrainEvalOverlap(Rule):
    """HR614."""

    code = "HR614"
    name = "train-eval-overlap"
    summary = "Samples of the evaluation split that are trained on, too."
    rationale = """
        A model knows the samples that it was trained on by heart: measured on them it looks better than it is, and most so
        when it overfits. Common ways there: the training loader gets the data set before it was split, the split is drawn
        a second time with another seed, or an index range begins one too early.

        It is no fault to measure the training samples as well, beside a split that is disjoint from them, or to evaluate
        each fold of a cross-validation on samples that the others train on.
        """
    experiment = """
        The numbers of the samples that the loaders draw from one data set are compared; or the rows that two splits say
        they hold; or digests of their samples. Nothing is changed.
        """
    needs = (SplitOverlap,)
    fix = Fix(
        text="Split once, keep the split, and give each loader its own part.",
        safety="changes which samples are trained on; measures become lower and true",
        snippet="import torch\nfrom torch.utils.data import random_split\n\n"
        "generator = torch.Generator().manual_seed(0)\n"
        "train_set, val_set = random_split(data, [0.8, 0.2], generator)",
    )
    references = ("pytorch-cifar#145", "LSTM-FCN#7", "shapeformer#2", "aestetik#12", "TOSICA#11", "multimil#75")

    def judge(self, seen: SplitOverlap) -> list[Finding]:
        """One finding at most."""
        if not seen.num_shared:
            return []
        is_all = seen.num_shared == seen.num_evaluation
        if is_all and seen.has_disjoint:
            return []
        is_same = is_all and seen.num_train == seen.num_evaluation
        share = (
            f"all {count(seen.num_shared, 'sample')}"
            if is_all
            else f"{seen.num_shared:,} of {count(seen.num_evaluation, 'sample')}"
            if seen.num_evaluation
            else count(seen.num_shared, "sample")
        )
        equal = " with equal content" if seen.basis == "content" else ""
        whole = ", which is the whole of it" if is_same else ""
        return [
            Finding(
                message=f"{share} of {seen.evaluation} {'is' if seen.num_shared == 1 else 'are'} also in "
                f"{seen.train}{equal}{whole}: {listing(seen.first_ids)}",
                severity="warning" if is_same or seen.basis == "content" else "error",
                confidence=0.7 if is_same else 0.9 if seen.basis == "content" else 1.0,
                basis="static" if seen.basis == "declared" else "observed",
                stage="evaluation",
                sample_ids=seen.first_ids,
                where=seen.where,
                evidence={
                    "num_shared": seen.num_shared,
                    "num_train": seen.num_train,
                    "num_evaluation": seen.num_evaluation,
                    "basis": seen.basis,
                },
            )
        ]

    sick = (
        Example(
            title="The training loader got the data set before the split",
            evidence=(
                SplitOverlap(
                    train="the loader made at train.py:12",
                    evaluation="the loader made at train.py:13",
                    num_shared=200,
                    num_train=1_000,
                    num_evaluation=200,
                    first_ids=(3, 9, 11),
                    basis="drawn",
                ),
            ),
            message="all 200 samples of the loader made at train.py:13 are also in the loader made at train.py:12: 3, 9, 11",
            sample_ids=(3, 9, 11),
        ),
        Example(
            title="An index range that begins one too early",
            evidence=(
                SplitOverlap(
                    train="train_set",
                    evaluation="val_set",
                    num_shared=1,
                    num_train=800,
                    num_evaluation=201,
                    first_ids=(799,),
                    basis="declared",
                ),
            ),
            message="1 of 201 samples of val_set is also in train_set: 799",
            sample_ids=(799,),
        ),
    )
    healthy = (
        Example(
            title="Disjoint splits",
            evidence=(
                SplitOverlap(
                    train="train_set",
                    evaluation="val_set",
                    num_shared=0,
                    num_train=800,
                    num_evaluation=200,
                    first_ids=(),
                    basis="declared",
                ),
            ),
        ),
        Example(
            title="The training samples measured beside a disjoint split",
            evidence=(
                SplitOverlap(
                    train="the loader made at train.py:12",
                    evaluation="the loader made at train.py:14",
                    num_shared=800,
                    num_train=800,
                    num_evaluation=800,
                    first_ids=(0, 1, 2),
                    basis="drawn",
                    has_disjoint=True,
                ),
            ),
        ),
    )
