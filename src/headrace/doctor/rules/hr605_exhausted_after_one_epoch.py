"""HR605 exhausted-after-one-epoch: the second pass yields nothing."""

from __future__ import annotations

from headrace.doctor.evidence.orders import EpochCounts
from headrace.doctor.made_up.orders import counts
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count


class ExhaustedAfterOneEpoch(Rule):
    """HR605."""

    code = "HR605"
    name = "exhausted-after-one-epoch"
    summary = "A loader whose second epoch is empty."
    rationale = """
        An `__iter__` that returns a generator made in `__init__`, or an open file that is never wound back, yields its
        data once. The first epoch looks right; every later one is a loop over nothing, which takes no time and
        trains nothing. With workers it stays hidden as long as each epoch starts new ones, and appears with
        `persistent_workers=True` or `num_workers=0`.

        It is no fault if a stream goes on where it stopped and still yields, or if the source winds it back by
        `reset()` itself; then it is only mentioned.
        """
    experiment = """
        The sampler is walked three times without reading samples; a stream is read to its end and then once more, in
        one process, within the limits.
        """
    needs = (EpochCounts,)
    fix = Fix(
        text="Make a new iterator in each call of `__iter__`.",
        safety="the second epoch gets data",
        snippet="def __iter__(self):\n"
        "    with open(self.path) as lines:  # opened for each pass\n"
        "        for line in lines:\n"
        "            yield self.parse(line)",
    )
    references = ("text#1282", "DALI#1471", "TileDB-ML#177", "ignite#1094", "accelerate#601")

    def judge(self, seen: EpochCounts) -> list[Finding]:
        """At most one finding."""
        if len(seen.single) < 2 or not all(one.is_complete for one in seen.single[:2]):
            return []
        first, second = seen.single[:2]
        if not first.num_batches or second.num_batches:
            return []
        number = first.num_batches if first.num_samples is None else first.num_samples
        noun = "batch" if first.num_samples is None else "sample"
        hidden = seen.is_stream and seen.num_workers > 0
        is_reset = seen.resets_at is not None
        return [
            Finding(
                message=f"{seen.source} yields {count(number, noun)} in the first epoch and none in the second"
                f"{' (new workers hide it, persistent_workers=True would not)' if hidden else ''}",
                severity="info" if is_reset else "warning" if hidden else "error",
                confidence=0.6 if is_reset else 1.0,
                basis="experiment",
                stage="read" if seen.is_stream else "sampler",
                where=seen.source_at or seen.source,
                evidence={"samples_per_epoch": [one.num_samples for one in seen.single], "reset_at": seen.resets_at},
            )
        ]

    sick = (
        Example(
            title="A generator that is made once",
            evidence=(counts(10, 0, said=None, source_at="data.py:9"),),
            message="LineStream yields 100 samples in the first epoch and none in the second",
        ),
        Example(
            title="A sampler that is an iterator",
            evidence=(counts(10, 0, 0, said=10, source="list_iterator", is_stream=False),),
            message="list_iterator yields 100 samples in the first epoch and none in the second",
        ),
        Example(
            title="New workers hide it",
            evidence=(counts(10, 0, said=None, num_workers=2),),
            message="LineStream yields 100 samples in the first epoch and none in the second (new workers hide it, "
            "persistent_workers=True would not)",
        ),
    )
    healthy = (
        Example(title="Two equal epochs", evidence=(counts(10, 10, said=None),)),
        Example(title="A stream that never has anything: HR309 tells", evidence=(counts(0, 0, said=None),)),
        Example(title="A stream that varies", evidence=(counts(10, 7, said=None),)),
    )
