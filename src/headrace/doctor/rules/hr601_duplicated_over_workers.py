"""HR601 duplicated-over-workers: each worker of a stream delivers what another one delivers too."""

from __future__ import annotations

from headrace.doctor.evidence import WorkerStreams
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import count, verb

MOST = 0.9
"""Share of a worker's samples that must be another's too: the same stream, and not a chance meeting."""


class DuplicatedOverWorkers(Rule):
    """HR601."""

    code = "HR601"
    name = "duplicated-over-workers"
    summary = "Workers of an iterable data set that deliver the same samples instead of a part each."
    rationale = """
        A torch DataLoader copies an iterable data set into each worker and does not split it: unless `__iter__` asks
        which worker it is, two workers deliver everything twice. The epoch becomes as many times longer as there are
        workers, evaluation counts samples several times, and nothing says so.

        It is no fault if the data hold equal samples, as long as one process delivers them as often. A stream that
        draws at random may meet itself now and then; it is named only if the epoch becomes longer, or if nearly
        everything that a worker delivers comes from another one too. If the streams did not end within the limit,
        only their beginnings were compared and the verdict is a warning. A loader that uses no workers is well as it
        is: then it is said as a piece of information, for the day on which it gets some.
        """
    experiment = """
        The stream is read once by one process and once by each worker, up to a limit; samples are compared by digests
        of their content. It opens the stream several times, which a remote source may count.
        """
    needs = (WorkerStreams,)
    fix = Fix(
        text="Let each worker take its own part of the stream.",
        safety="each sample once per epoch; the order over workers changes",
        snippet="def __iter__(self):\n"
        "    info = torch.utils.data.get_worker_info()\n"
        "    worker = 0 if info is None else info.id\n"
        "    workers = 1 if info is None else info.num_workers\n"
        "    for number, record in enumerate(self.records()):\n"
        "        if number % workers == worker:\n"
        "            yield record",
    )
    references = ("datasets#3423", "pytorch#30599", "tfrecord#78", "MatchZoo-py#169", "finetrainers#394")

    def judge(self, streams: WorkerStreams) -> list[Finding]:
        """At most one finding."""
        if streams.num_workers < 2 or streams.num_duplicated == 0:
            return []
        total = sum(streams.per_worker)
        # If repeats are what makes the epoch longer, there are about as many of them as samples too many. Random draws
        # meet each other without making it longer.
        is_longer = streams.is_complete and streams.num_duplicated <= 2 * (total - streams.num_single)
        shortest = min((number for number in streams.per_worker if number), default=0)
        is_whole = streams.num_duplicated >= MOST * max(shortest, 1)
        if not (is_longer or is_whole):
            return []
        workers = f"{streams.num_workers} workers"
        if streams.num_own_workers == 0:
            workers += " (the loader uses none yet)"
        measure = (
            f"{count(total, 'sample')} with {workers}, {streams.num_single:,} with one process"
            if streams.is_complete
            else f"among the first {count(total, 'sample')} of {workers}"
        )
        severity: Severity = "error" if streams.is_complete else "warning"
        return [
            Finding(
                message=f"{count(streams.num_duplicated, 'sample')} {verb(streams.num_duplicated, 'repeats', 'repeat')} what "
                f"another worker delivers: {measure}",
                severity="info" if streams.num_own_workers == 0 else severity,
                confidence=(1.0 if is_longer and is_whole else 0.8) if streams.is_complete else 0.7,
                basis="experiment",
                stage="workers",
                evidence={
                    "num_workers": streams.num_workers,
                    "per_worker": list(streams.per_worker),
                    "num_single": streams.num_single,
                    "num_duplicated": streams.num_duplicated,
                    "first_duplicate": streams.first_duplicate,
                },
            )
        ]

    sick = (
        Example(
            title="Two workers, each with the whole stream",
            evidence=(
                WorkerStreams(
                    num_workers=2,
                    per_worker=(100, 100),
                    num_single=100,
                    num_duplicated=100,
                    first_duplicate="9f2c at place 0",
                    is_complete=True,
                ),
            ),
            message="100 samples repeat what another worker delivers: 200 samples with 2 workers, 100 with one process",
        ),
        Example(
            title="An endless stream whose workers begin alike",
            evidence=(
                WorkerStreams(
                    num_workers=2,
                    per_worker=(64, 64),
                    num_single=64,
                    num_duplicated=64,
                    first_duplicate="9f2c at place 0",
                    is_complete=False,
                ),
            ),
            message="64 samples repeat what another worker delivers: among the first 128 samples of 2 workers",
        ),
        Example(
            title="Each worker takes the same first part",
            evidence=(
                WorkerStreams(
                    num_workers=2,
                    per_worker=(50, 50),
                    num_single=100,
                    num_duplicated=50,
                    first_duplicate="9f2c at place 0",
                    is_complete=True,
                ),
            ),
            message="50 samples repeat what another worker delivers: 100 samples with 2 workers, 100 with one process",
        ),
        Example(
            title="A loader without workers, tried with two",
            evidence=(
                WorkerStreams(
                    num_workers=2,
                    per_worker=(100, 100),
                    num_single=100,
                    num_duplicated=100,
                    first_duplicate="9f2c at place 0",
                    is_complete=True,
                    num_own_workers=0,
                ),
            ),
            message="100 samples repeat what another worker delivers: 200 samples with 2 workers (the loader uses none "
            "yet), 100 with one process",
        ),
    )
    healthy = (
        Example(
            title="A stream that is split",
            evidence=(
                WorkerStreams(
                    num_workers=2,
                    per_worker=(50, 50),
                    num_single=100,
                    num_duplicated=0,
                    first_duplicate=None,
                    is_complete=True,
                ),
            ),
        ),
        Example(
            title="Random draws from a small set that met a few times",
            evidence=(
                WorkerStreams(
                    num_workers=2,
                    per_worker=(500, 500),
                    num_single=1_000,
                    num_duplicated=31,
                    first_duplicate="07aa at place 12",
                    is_complete=True,
                ),
            ),
        ),
    )
