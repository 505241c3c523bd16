"""HR701 copy-on-write-growth: forked workers copy a large list of Python objects by looking at it."""

from __future__ import annotations

from headrace.doctor.evidence.system import Container, Containers
from headrace.doctor.rule import Example, Finding, Fix, Rule

MIB = 2**20
NOTEWORTHY = 48 * MIB
"""Copies in all workers together: below this nobody loses a run to it."""
FEWEST_OBJECTS = 50_000


class CopyOnWriteGrowth(Rule):
    """HR701."""

    code = "HR701"
    name = "copy-on-write-growth"
    summary = (
        "A large list or dict of small Python objects that forked workers share at first, and copy as they use it."
    )
    rationale = """
        A forked worker shares its parent's memory until one of them writes to a page. Python writes when it only reads: each
        object holds a reference count, and looking at it changes the count. So a list of a million dicts or strings is copied
        page by page into every worker; memory climbs through the first epoch, and with enough workers the machine kills one.
        It is no leak: it ends when each worker has its copy.

        It is no fault to hold large arrays or tensors, whose contents have no counts, nor small lists.
        """
    experiment = (
        "The objects that workers inherit are walked through; large containers are measured by some of their elements."
    )
    needs = (Containers,)
    fix = Fix(
        text="Keep the columns in arrays, or the texts in one block: headrace.Manifest, pyarrow, or numpy.",
        safety="same data",
        snippet="self.boxes = np.array([row['box'] for row in rows])\n"
        "self.paths = headrace.Manifest([row['file'] for row in rows])",
    )
    references = ("pytorch#13246", "pytorch#5902", "pytorch#20433", "referit3d#5", "pytorch#64337")

    def judge(self, seen: Containers) -> list[Finding]:
        """At most one finding, for the largest container."""
        if seen.num_workers == 0 or seen.start_method not in {"fork", None}:
            return []
        large = [
            one
            for one in seen.containers
            if one.num_objects >= FEWEST_OBJECTS and one.size_bytes * seen.num_workers >= NOTEWORTHY
        ]
        if not large:
            return []
        first = large[0]
        total = first.size_bytes * seen.num_workers
        noun = "worker copies" if seen.num_workers == 1 else "forked workers each copy"
        return [
            Finding(
                message=f"{first.path} holds {first.num_objects:,} Python objects ({first.size_bytes / MIB:,.0f} MiB), which "
                f"{seen.num_workers} {noun} as they use them: up to {total / MIB:,.0f} MiB more",
                severity="warning",
                basis="static",
                confidence=0.85,
                stage="start of workers",
                where=first.path,
                evidence={"num_objects": first.num_objects, "size_bytes": first.size_bytes, "growth_bytes": total},
            )
        ]

    sick = (
        Example(
            title="Annotations as a list of dicts",
            evidence=(
                Containers(
                    num_workers=8,
                    start_method="fork",
                    containers=(Container(path="dataset.rows", num_objects=6_000_000, size_bytes=700 * MIB),),
                ),
            ),
            message="dataset.rows holds 6,000,000 Python objects (700 MiB), which 8 forked workers each copy as they use them: "
            "up to 5,600 MiB more",
        ),
        Example(
            title="A million file names",
            evidence=(
                Containers(
                    num_workers=1,
                    start_method="fork",
                    containers=(Container(path="dataset.paths", num_objects=1_000_000, size_bytes=95 * MIB),),
                ),
            ),
            message="dataset.paths holds 1,000,000 Python objects (95 MiB), which 1 worker copies as they use them: up to 95 MiB "
            "more",
        ),
    )
    healthy = (
        Example(
            title="Some thousand file names",
            evidence=(
                Containers(
                    num_workers=8,
                    start_method="fork",
                    containers=(Container(path="dataset.paths", num_objects=50_000, size_bytes=5 * MIB),),
                ),
            ),
        ),
        Example(
            title="Without workers",
            evidence=(
                Containers(
                    num_workers=0,
                    start_method="fork",
                    containers=(Container(path="dataset.rows", num_objects=6_000_000, size_bytes=700 * MIB),),
                ),
            ),
        ),
    )
