"""HR603 lost-in-workers: samples of a stream that one process delivers, and workers do not."""

from __future__ import annotations

from headrace.doctor.evidence.workers import WorkerShares
from headrace.doctor.made_up.workers import shared
from headrace.doctor.questions.workers import asleep, setting
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

NOTABLE = 0.05
"""Share of the samples from which on losing them by drop_last is a fault: a rest of one batch per worker is ordinary in a
large data set."""


class LostInWorkers(Rule):
    """HR603."""

    code = "HR603"
    name = "lost-in-workers"
    summary = "Samples of a stream that are lost when workers share it, by the way it is split or by drop_last."
    rationale = """
        A stream that is split with `length // num_workers` forgets the rest of the division; one that is split into
        files forgets those for which no worker is left. And `drop_last=True` works in each worker of a stream: each
        drops its own incomplete batch, not one for the whole epoch, and a worker with fewer samples than a batch
        delivers nothing at all. Without shuffling it is the same samples in every epoch.

        It is no fault if the number of samples changes from walk to walk: such streams cannot be compared. Losing the
        rest of one batch per worker is only worth knowing as long as it is a small part of the data.
        """
    experiment = """
        The stream is read to its end by workers and twice by one process, up to a limit. Contents are compared by digests
        if they are the same in both walks of one process, numbers of samples in any case.
        """
    needs = (WorkerShares,)
    fix = Fix(
        text="Give sample k to worker k modulo their number, so that nothing is left over; use drop_last=False, or a part for "
        "each worker that is a multiple of the batch size.",
        safety="every sample once per epoch; there may be smaller batches",
        snippet="def __iter__(self):\n"
        "    info = torch.utils.data.get_worker_info()\n"
        "    for number, record in enumerate(self.records()):\n"
        "        if info is None or number % info.num_workers == info.id:\n"
        "            yield record",
    )
    references = ("pytorch#33413", "detectron2#5035", "datasets#6565", "grain#1129")

    def judge(self, shares: WorkerShares) -> list[Finding]:
        """One finding for what is split away, one for what is dropped."""
        if not shares.is_iterable or not shares.is_complete or not shares.num_single:
            return []
        return [*self._split_away(shares, shares.num_single), *self._dropped(shares, shares.num_single)]

    @staticmethod
    def _split_away(shares: WorkerShares, num_single: int) -> list[Finding]:
        lost = num_single - sum(shares.per_worker) if shares.num_missing is None else shares.num_missing
        if lost <= 0:
            return []
        return [
            Finding(
                message=f"{count(lost, 'sample')} of {num_single:,} that one process yields come from none of {setting(shares)}",
                severity=asleep(shares.num_own_workers, "error"),
                confidence=1.0 if shares.num_missing else 0.8,
                basis="experiment",
                stage="workers",
                evidence={"per_worker": list(shares.per_worker), "num_single": num_single, "num_lost": lost},
            )
        ]

    @staticmethod
    def _dropped(shares: WorkerShares, num_single: int) -> list[Finding]:
        more = shares.num_dropped - shares.num_dropped_single
        if more <= 0:
            return []
        share = shares.num_dropped / num_single
        size = shares.batch_size or 1
        idle = sum(0 < number < size for number in shares.per_worker)
        nothing = f"; {count(idle, 'worker')} of them delivers nothing" if idle else ""
        return [
            Finding(
                message=f"drop_last works in each worker: {setting(shares)} drop {shares.num_dropped:,} of "
                f"{count(num_single, 'sample')} ({share:.0%}), one process drops {shares.num_dropped_single:,}{nothing}",
                severity=asleep(shares.num_own_workers, "warning" if share >= NOTABLE else "info"),
                basis="experiment",
                stage="collate",
                evidence={
                    "per_worker": list(shares.per_worker),
                    "batch_size": shares.batch_size,
                    "num_dropped": shares.num_dropped,
                    "num_dropped_single": shares.num_dropped_single,
                },
            )
        ]

    sick = (
        Example(
            title="length // num_workers",
            evidence=(shared(33, 33, 33, num_single=101, num_missing=2),),
            message="2 samples of 101 that one process yields come from none of 3 workers",
        ),
        Example(
            title="drop_last with small parts",
            evidence=(shared(15, 15, drop_last=True, num_dropped=14, num_dropped_single=6),),
            message="drop_last works in each worker: 2 workers drop 14 of 30 samples (47%), one process drops 6",
        ),
    )
    healthy = (
        Example(title="Everything arrives", evidence=(shared(50, 51),)),
        Example(title="A random number of samples", evidence=(shared(50, 40, num_single=None, num_missing=None),)),
        Example(title="Repeated samples", evidence=(shared(50, 50, num_single=50, num_missing=0),)),
        Example(
            title="drop_last that drops one batch",
            evidence=(shared(8, 10, drop_last=True, num_dropped=2, num_dropped_single=2),),
        ),
    )
