"""HR510 heavy-dataset-pickle: starting workers means sending each of them a large data set."""

from __future__ import annotations

from headrace.doctor.evidence.objects import PartPickle, PartPickles
from headrace.doctor.rule import Example, Finding, Fix, Rule

HEAVY_BYTES = 128 * 2**20
"""For all workers together: some tenths of a second of writing, sending and building in each, and as much memory."""
SLOW_S = 1.0
"""Per worker, whatever the size: many small objects pickle slowly."""


class HeavyDatasetPickle(Rule):
    """HR510."""

    code = "HR510"
    name = "heavy-dataset-pickle"
    summary = "A data set so large that sending it to each worker costs seconds and gigabytes."
    rationale = """
        Workers that are not forks get the data set as a pickle, each its own: a list of a million file names or annotations,
        or the data themselves, is written, sent and built anew for every worker, in every epoch unless workers persist.
        The loop waits for all of it before its first batch, and each worker holds its copy.

        It is no fault with forked workers, which get nothing sent. Tensors travel by shared memory and do not count.
        """
    experiment = "The data set is pickled once in the way that multiprocessing does it, and the pickle is measured."
    needs = (PartPickles,)
    fix = Fix(
        text="Keep paths and numbers in arrays instead of lists of objects (headrace.Manifest does), read large data in the "
        "worker from a file that it maps, and let workers persist.",
        safety="same data",
        snippet="self.paths = headrace.Manifest(paths)  # one block of bytes\n"
        "self.pixels = np.load(path, mmap_mode='r')  # mapped, not sent",
    )
    references = ("pytorch#87802", "pytorch#139793", "pytorch#22585")

    def judge(self, seen: PartPickles) -> list[Finding]:
        """At most one finding, for the data set."""
        if seen.num_workers == 0 or seen.start_method not in {"spawn", "forkserver"}:
            return []
        heavy = [part for part in seen.parts if part.part == "dataset" and _is_heavy(part, seen.num_workers)]
        return [_finding(part, seen) for part in heavy]

    sick = (
        Example(
            title="The whole data in a list, sent to eight workers in each epoch",
            evidence=(
                PartPickles(
                    num_workers=8,
                    start_method="forkserver",
                    persistent_workers=False,
                    parts=(PartPickle(part="dataset", size_bytes=400 * 2**20, wall_s=3.2),),
                ),
            ),
            message="the data set is 400 MiB as a pickle, and 8 workers (forkserver) get one each, in every epoch: 3,200 MiB",
        ),
        Example(
            title="A million small objects, slow rather than large",
            evidence=(
                PartPickles(
                    num_workers=1,
                    start_method="spawn",
                    persistent_workers=True,
                    parts=(PartPickle(part="dataset", size_bytes=30 * 2**20, wall_s=2.5),),
                ),
            ),
            message="the data set is 30 MiB as a pickle, and 1 worker gets one, once: 30 MiB",
        ),
    )
    healthy = (
        Example(
            title="The same with forked workers",
            evidence=(
                PartPickles(
                    num_workers=8,
                    start_method="fork",
                    persistent_workers=False,
                    parts=(PartPickle(part="dataset", size_bytes=400 * 2**20, wall_s=3.2),),
                ),
            ),
        ),
        Example(
            title="A list of some thousand paths",
            evidence=(
                PartPickles(
                    num_workers=8,
                    start_method="spawn",
                    persistent_workers=False,
                    parts=(PartPickle(part="dataset", size_bytes=900_000, wall_s=0.01),),
                ),
            ),
        ),
    )


def _is_heavy(part: PartPickle, num_workers: int) -> bool:
    return part.size_bytes is not None and (part.size_bytes * num_workers >= HEAVY_BYTES or part.wall_s >= SLOW_S)


def _finding(part: PartPickle, seen: PartPickles) -> Finding:
    size = (part.size_bytes or 0) / 2**20
    noun = "worker gets one" if seen.num_workers == 1 else "workers (" + str(seen.start_method) + ") get one each"
    when = "once" if seen.persistent_workers else "in every epoch"
    return Finding(
        message=f"the data set is {size:,.0f} MiB as a pickle, and {seen.num_workers} {noun}, {when}: "
        f"{size * seen.num_workers:,.0f} MiB",
        severity="warning",
        basis="experiment",
        confidence=0.9,
        stage="start of workers",
        where="dataset",
        evidence={"size_bytes": part.size_bytes, "pickling_s": round(part.wall_s, 3)},
    )
