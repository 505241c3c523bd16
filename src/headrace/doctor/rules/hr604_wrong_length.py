"""HR604 wrong-length: the loader yields another number of batches than `len` says."""

from __future__ import annotations

from headrace.doctor.evidence.orders import EpochCounts
from headrace.doctor.made_up.orders import counts
from headrace.doctor.rule import Example, Finding, Fix, Rule


class WrongLength(Rule):
    """HR604."""

    code = "HR604"
    name = "wrong-length"
    summary = "A loader whose len differs from the number of batches that come."
    rationale = """
        Progress bars, learning-rate schedules and trainers ask the loader how long it is. If it says too little, the
        schedule ends early and some trainers stop there; if it says too much, the schedule never ends and ranks wait
        for batches that do not come. A `__len__` that counts files instead of samples, ignores a filter or was copied
        from another sampler is enough.

        It is no fault if a loader has no length at all, or no end, so that the loop cuts its epochs; the latter is
        mentioned. Workers of a stream end with an incomplete batch each, so some
        more batches than one process makes (or fewer, where incomplete batches are dropped) are only mentioned. A
        whole multiple of the length with workers is another fault, HR601.
        """
    experiment = """
        The sampler is walked to its end without reading samples; a stream is read to its end in one process, and once
        more with the loader's workers, within the limits.
        """
    needs = (EpochCounts,)
    fix = Fix(
        text="Let `__len__` count what `__iter__` yields, or leave `__len__` out.",
        safety="same data; schedules and progress bars that ask for the length change",
    )
    references = ("pytorch#38925", "Lightning#6966", "pytorch-lifestream#197", "lhotse#213")

    def judge(self, seen: EpochCounts) -> list[Finding]:
        """At most one finding."""
        if seen.said_batches is None or not seen.single:
            return []
        return self._single(seen) or self._with_workers(seen)

    def _single(self, seen: EpochCounts) -> list[Finding]:
        said, first = seen.said_batches or 0, seen.single[0]
        if first.num_batches == said or (not first.is_complete and first.num_batches < said):
            return []
        if not first.num_batches and first.is_complete and not said:
            return []
        came = f"{first.num_batches:,} come" if first.is_complete else f"more than {said:,} come"
        # A loader without an end may name the length of an epoch that the loop cuts.
        severity = "warning" if first.is_complete else "info"
        return [self._finding(seen, f"len(loader) says {_batches(said)}, {came}", first.num_batches, severity, 0.95)]

    def _with_workers(self, seen: EpochCounts) -> list[Finding]:
        said = seen.said_batches or 0
        if not seen.with_workers or not seen.with_workers[0].is_complete:
            return []
        came = seen.with_workers[0].num_batches
        # Each worker may repeat the whole stream: HR601 says so.
        if came == said or came >= 1.9 * said:
            return []
        message = f"len(loader) says {_batches(said)}, {came:,} come with {seen.num_workers} workers"
        if abs(came - said) <= seen.num_workers:
            how = "drops its" if seen.drop_last else "ends with an"
            message += f": each worker {how} incomplete batch"
            return [self._finding(seen, message, came, "info", 0.9)]
        return [self._finding(seen, message, came, "warning", 0.85)]

    @staticmethod
    def _finding(seen: EpochCounts, message: str, came: int, severity: str, confidence: float) -> Finding:
        return Finding(
            message=message,
            severity="warning" if severity == "warning" else "info",
            confidence=confidence,
            basis="experiment",
            stage="sampler",
            where=seen.source_at or seen.source,
            evidence={"said": seen.said_batches, "came": came, "num_workers": seen.num_workers, "source": seen.source},
        )

    sick = (
        Example(
            title="A stream that counts its files",
            evidence=(counts(16, 16, said=8, source_at="data.py:9"),),
            message="len(loader) says 8 batches, 16 come",
        ),
        Example(
            title="A batch sampler that forgets what it leaves out",
            evidence=(counts(9, 9, 9, said=10, source="TokenBatches", is_stream=False),),
            message="len(loader) says 10 batches, 9 come",
        ),
        Example(
            title="Workers that read a third of the stream",
            evidence=(counts(30, 30, said=30, with_workers=20),),
            message="len(loader) says 30 batches, 20 come with 2 workers",
        ),
        Example(
            title="An incomplete batch of each worker: only mentioned",
            evidence=(counts(13, 13, said=13, with_workers=14),),
            message="len(loader) says 13 batches, 14 come with 2 workers: each worker ends with an incomplete batch",
        ),
    )
    healthy = (
        Example(title="As many as it says", evidence=(counts(10, 10, said=10),)),
        Example(title="A stream without a length", evidence=(counts(10, 10, said=None),)),
        Example(
            title="Each worker repeats the stream, which is HR601", evidence=(counts(8, 8, said=8, with_workers=16),)
        ),
    )


def _batches(number: int) -> str:
    return f"{number:,} batch{'' if number == 1 else 'es'}"
