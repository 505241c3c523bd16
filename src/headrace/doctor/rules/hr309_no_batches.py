"""HR309 no-batches: an epoch without a single batch."""

from __future__ import annotations

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.made_up import loader
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

KEEP_LAST = Fix(
    text="Keep the incomplete last batch, or make batches that the data set can fill.",
    safety="the epoch gets a batch that is smaller than the others, which batch norm in training may not like if it is 1",
    snippet="loader = DataLoader(dataset, batch_size=64, drop_last=False)",
)
FIND_DATA = Fix(
    text="Look at how the data set finds its records: the folder, the pattern, the split and the filter.",
    safety="only looks",
    snippet="print(len(dataset), dataset)",
)
FIND_SAMPLER = Fix(
    text="Look at the sampler: an empty subset, a split of another data set, more ranks than samples.",
    safety="only looks",
    snippet="print(len(loader.sampler), list(loader.sampler)[:10])",
)


class NoBatches(Rule):
    """HR309."""

    code = "HR309"
    name = "no-batches"
    summary = (
        "A loader that yields no batch: an empty data set or sampler, or fewer samples than one batch and drop_last."
    )
    rationale = """
        A loop over nothing does nothing, quietly: the loss stays 0.0, the weights stay as they were, and the epoch
        takes no time. A wrong folder, a filter that lets nothing through, or a small fine-tuning set with a batch size
        and `drop_last=True` taken from a larger one are enough.

        It is no fault if a last incomplete batch is dropped while others remain. Of a stream it is only said that its
        pass holds no sample at all.
        """
    experiment = """
        The loader and its data set are asked for their lengths; a stream is walked.
        """
    needs = (LoaderFacts,)
    fix = KEEP_LAST
    references = ("tabnet#537", "fastai#2416", "vamb#425")

    def judge(self, facts: LoaderFacts) -> list[Finding]:
        """At most one finding."""
        num_samples, batch_size = facts.num_samples, facts.batch_size
        is_short = facts.drop_last and num_samples is not None and batch_size is not None and num_samples < batch_size
        if facts.yields_nothing:
            message, fix = "the stream ends before its first sample", FIND_DATA
        elif num_samples == 0 and not facts.is_iterable:
            message, fix = "the data set is empty: 0 samples", FIND_DATA
        elif is_short and num_samples and not (facts.is_iterable and facts.num_batches):
            message = (
                f"{count(num_samples, 'sample')} cannot fill one batch of {batch_size:,}, and drop_last=True drops the rest: "
                "0 batches per epoch"
            )
            fix = KEEP_LAST
        elif facts.num_batches == 0 and facts.drop_last and batch_size is not None and num_samples:
            message = (
                f"what the sampler draws of {count(num_samples, 'sample')} cannot fill one batch of {batch_size:,}, and "
                "drop_last=True drops the rest: 0 batches per epoch"
            )
            fix = KEEP_LAST
        elif facts.num_batches == 0:
            of = "" if num_samples is None else f" from {count(num_samples, 'sample')}"
            message, fix = f"the loader makes 0 batches{of}: its sampler yields nothing", FIND_SAMPLER
        else:
            return []
        return [
            Finding(
                message=message,
                basis="static",
                stage="sampler",
                evidence={
                    "num_samples": num_samples,
                    "batch_size": batch_size,
                    "drop_last": facts.drop_last,
                    "num_batches": facts.num_batches,
                },
                fix=fix,
            )
        ]

    sick = (
        Example(
            title="Fewer samples than one batch",
            evidence=(loader(num_samples=12, batch_size=1_024, drop_last=True, num_batches=0),),
            message="12 samples cannot fill one batch of 1,024, and drop_last=True drops the rest: 0 batches per epoch",
        ),
        Example(
            title="A folder in which nothing was found",
            evidence=(loader(num_samples=0, num_batches=0),),
            message="the data set is empty: 0 samples",
        ),
        Example(
            title="A stream over a pattern that no file matches",
            evidence=(loader(is_iterable=True, num_samples=None, num_batches=None, yields_nothing=True),),
            message="the stream ends before its first sample",
        ),
        Example(
            title="A sampler without an index",
            evidence=(loader(num_samples=500, num_batches=0, batch_size=None),),
            message="the loader makes 0 batches from 500 samples: its sampler yields nothing",
        ),
        Example(
            title="A rank's share that is smaller than a batch",
            evidence=(loader(num_samples=50, batch_size=16, drop_last=True, num_batches=0),),
            message="what the sampler draws of 50 samples cannot fill one batch of 16, and drop_last=True drops the rest: "
            "0 batches per epoch",
        ),
    )
    healthy = (
        Example(
            title="Fewer samples than one batch, and the incomplete batch is kept",
            evidence=(loader(num_samples=12, batch_size=1_024, num_batches=1),),
        ),
        Example(
            title="An incomplete last batch is dropped, 15 others remain",
            evidence=(loader(num_samples=1_000, batch_size=64, drop_last=True, num_batches=15),),
        ),
        Example(
            title="A stream that does not say how long it is",
            evidence=(loader(is_iterable=True, num_samples=None, num_batches=None, drop_last=True),),
        ),
    )
