"""HR602 idle-workers: some workers have nothing to do while others have everything."""

from __future__ import annotations

from headrace.doctor.evidence.workers import WorkerShares
from headrace.doctor.made_up.workers import shared
from headrace.doctor.questions.workers import asleep, setting
from headrace.doctor.rule import Example, Finding, Fix, Rule

UNEVEN = 0.25
"""A share of the samples below this part of the largest share is hardly any: files of unequal size differ by less."""
FEWEST_BATCHES = 8
"""Batches for each worker below which an uneven share may be chance."""


class IdleWorkers(Rule):
    """HR602."""

    code = "HR602"
    name = "idle-workers"
    summary = "Workers that get no samples, or hardly any, while others get the rest."
    rationale = """
        A stream that is split by files gives nothing to the workers for which no file is left: eight workers on two
        files are two workers, and six processes that cost memory. Of a map-style data set every worker gets each n-th
        batch; a batch sampler whose sizes alternate in the same rhythm gives one worker the large ones and another one
        the small ones. The speed is that of the busiest worker, and nothing says why more workers do not help.

        It is no fault if shares differ a little. A data set with fewer batches than workers is only worth knowing.
        """
    experiment = """
        The samples of each worker are counted while the stream is read once by workers, or by dealing out the batches of
        the loader's own sampler as torch does.
        """
    needs = (WorkerShares,)
    fix = Fix(
        text="Split the stream into at least as many parts as there are workers (several per worker), or split by record "
        "instead of by file; or use fewer workers.",
        safety="same samples; the order over workers changes",
        snippet="def __iter__(self):\n"
        "    info = torch.utils.data.get_worker_info()\n"
        "    for number, record in enumerate(self.records()):\n"
        "        if number % info.num_workers == info.id:\n"
        "            yield record",
    )
    references = ("datasets#7999", "webdataset#65", "lerobot#3781", "ms-swift#4061", "LlamaFactory#9590")

    def judge(self, shares: WorkerShares) -> list[Finding]:
        """At most one finding."""
        most = max(shares.per_worker, default=0)
        if shares.num_workers < 2 or not most or not (shares.is_complete or not shares.is_iterable):
            return []
        idle = [worker for worker, number in enumerate(shares.per_worker) if number == 0]
        few = [worker for worker, number in enumerate(shares.per_worker) if 0 < number < UNEVEN * most]
        is_short = shares.num_batches is not None and shares.num_batches < shares.num_workers
        num_batches = shares.num_batches or most / (shares.batch_size or 1)
        if not idle and (not few or num_batches < FEWEST_BATCHES * (1 if shares.is_iterable else shares.num_workers)):
            return []
        if not shares.is_iterable and idle and not is_short:
            return []
        counts = ", ".join(f"{number:,}" for number in shares.per_worker[:16])
        what = (
            f"{len(idle)} of {setting(shares)} get no samples" if idle else f"{setting(shares)} are very unequally busy"
        )
        why = f": the loader has only {shares.num_batches} batches" if is_short else ""
        return [
            Finding(
                message=f"{what} (samples for each: {counts}){why}",
                severity=asleep(shares.num_own_workers, "info" if is_short else "warning"),
                confidence=0.9 if idle else 0.7,
                basis="experiment",
                stage="workers",
                evidence={"per_worker": list(shares.per_worker), "num_batches": shares.num_batches},
            )
        ]

    sick = (
        Example(
            title="One file, two workers",
            evidence=(shared(2_400, 0),),
            message="1 of 2 workers get no samples (samples for each: 2,400, 0)",
        ),
        Example(
            title="Batches of 60 and of 4 in turn",
            evidence=(shared(1_200, 80, is_iterable=False, num_batches=40, batch_size=None),),
            message="2 workers are very unequally busy (samples for each: 1,200, 80)",
        ),
        Example(
            title="Fewer batches than workers",
            evidence=(shared(8, 8, 0, 0, is_iterable=False, num_batches=2),),
            message="2 of 4 workers get no samples (samples for each: 8, 8, 0, 0): the loader has only 2 batches",
        ),
    )
    healthy = (
        Example(title="Files of unequal size", evidence=(shared(1_200, 700),)),
        Example(title="Only the beginning was seen", evidence=(shared(400, 0, is_complete=False),)),
        Example(title="One worker", evidence=(shared(400),)),
        Example(title="A small rest", evidence=(shared(8, 1),)),
    )
