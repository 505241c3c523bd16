"""HR703 growing-file-descriptors: each sample leaves a file open."""

from __future__ import annotations

from headrace.doctor.evidence.system import Growth
from headrace.doctor.made_up.system import growth
from headrace.doctor.rule import Example, Finding, Fix, Rule

FEWEST = 12
"""Files that must have stayed open to speak of growth."""
STEADY = 0.6
"""Part of the growth of the first half of the reads that the second half must show too: a cache that fills does not."""


class GrowingFileDescriptors(Rule):
    """HR703."""

    code = "HR703"
    name = "growing-file-descriptors"
    summary = "Reading samples leaves files open, more with each sample."
    rationale = """
        A file, archive or connection that is opened for each sample and kept by somebody (a list, a cache without a bound, a
        reference cycle) stays open. The process reaches its limit, usually 1,024, in the middle of an epoch: "too many open
        files", in code that has nothing to do with it.

        It is no fault to keep a bounded number of files open: growth that ends is silent, and so is growth that does not
        reach the limit within the data set.
        """
    experiment = (
        "Some hundred samples are read in one process and thrown away; open descriptors are counted on the way."
    )
    needs = (Growth,)
    fix = Fix(
        text="Close what each sample opens, or bound what is kept.",
        safety="same data",
        snippet="with h5py.File(path) as file:\n    image = file['image'][:]",
    )
    references = ("pytorch#973", "pytorch#11201", "pytorch#41465", "graph-physics#22")

    def judge(self, seen: Growth) -> list[Finding]:
        """At most one finding."""
        if len(seen.files) < 5 or seen.num_reads == 0:
            return []
        grown = seen.files[-1] - seen.files[0]
        first, second = seen.files[2] - seen.files[0], seen.files[4] - seen.files[2]
        per_read = grown / seen.num_reads
        if seen.files[-1] >= seen.file_limit and first >= FEWEST:
            second = first  # it was reached already: there was no room to grow further
        workers = max(seen.num_workers, 1)
        reached = seen.files[0] + per_read * seen.num_samples / workers
        if grown < FEWEST or second < STEADY * first or reached < seen.file_limit:
            return []
        at = int((seen.file_limit - seen.files[0]) / per_read)
        return [
            Finding(
                message=f"{grown} files were left open by {seen.num_reads:,} samples; the limit of {seen.file_limit:,} is reached at "
                f"about sample {at:,}" + (f" of each of {workers} workers" if workers > 1 else ""),
                severity="error",
                basis="experiment",
                confidence=0.9,
                stage="read",
                evidence={"files": list(seen.files), "num_reads": seen.num_reads, "file_limit": seen.file_limit},
            )
        ]

    sick = (
        Example(
            title="A file per sample, kept in a dict",
            evidence=(
                growth(num_reads=200, num_samples=50_000, num_workers=0, files=(9, 59, 109, 159, 209), file_limit=1024),
            ),
            message="200 files were left open by 200 samples; the limit of 1,024 is reached at about sample 1,015",
        ),
        Example(
            title="With workers, each of which reaches it for itself",
            evidence=(
                growth(num_reads=100, num_samples=50_000, num_workers=4, files=(10, 35, 60, 85, 110), file_limit=1024),
            ),
            message="100 files were left open by 100 samples; the limit of 1,024 is reached at about sample 1,014 of each of 4 workers",
        ),
    )
    healthy = (
        Example(
            title="A cache of sixteen open shards that is full",
            evidence=(
                growth(num_reads=200, num_samples=50_000, num_workers=0, files=(9, 25, 25, 25, 25), file_limit=1024),
            ),
        ),
        Example(
            title="A few large files, all of which may stay open",
            evidence=(growth(num_reads=40, num_samples=40, num_workers=0, files=(9, 19, 29, 39, 49), file_limit=1024),),
        ),
    )
