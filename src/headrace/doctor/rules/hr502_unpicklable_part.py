"""HR502 unpicklable-part: a part of the loader cannot be sent to a worker that is not a fork."""

from __future__ import annotations

from headrace.doctor.evidence.objects import PartPickle, PartPickles
from headrace.doctor.rule import Example, Finding, Fix, Rule


class UnpicklablePart(Rule):
    """HR502."""

    code = "HR502"
    name = "unpicklable-part"
    summary = "A data set, collate function or worker_init_fn that cannot be pickled, and so cannot reach a worker that is no fork."
    rationale = """
        Workers that are spawned, or started by a fork server, get the loader's parts as pickles. A lambda, a function or
        class that is defined inside another function, an open handle or a lock cannot be pickled: the loader fails at
        its first batch. So it is on Windows and macOS, on Linux with `multiprocessing_context="spawn"` or
        "forkserver", and from Python 3.14 on everywhere on Linux too, where the fork server is the default.

        It is no fault where workers are forks, since nothing is pickled: there this is a remark. A part with a `__getstate__` that leaves out
        what cannot travel is healthy.
        """
    experiment = """
        Each part is pickled apart, as multiprocessing does it; in one that refuses, the objects inside are tried one by
        one, to name the innermost. Tensors and queues are passed as multiprocessing passes them.
        """
    needs = (PartPickles,)
    fix = Fix(
        text="Define it at the top of a module, or make it a class with `__call__`; bind arguments with functools.partial.",
        safety="same data",
        snippet="def scale(image, factor):  # at the top of the module, no lambda\n"
        "    return image * factor\n\n"
        "transform = functools.partial(scale, factor=1 / 255)",
    )
    references = ("cartridges#20", "diffusers#1692", "CLIP#151", "pytorch#169252", "pytorch#138957", "apex#339")

    def judge(self, seen: PartPickles) -> list[Finding]:
        """One finding for each part that refuses."""
        fails_now = seen.num_workers > 0 and seen.start_method in {"spawn", "forkserver"}
        return [_finding(part, seen, fails_now=fails_now) for part in seen.parts if part.size_bytes is None]

    sick = (
        Example(
            title="A lambda among the transforms, and spawned workers",
            evidence=(
                PartPickles(
                    num_workers=2,
                    start_method="spawn",
                    persistent_workers=False,
                    parts=(
                        PartPickle(
                            part="dataset",
                            size_bytes=None,
                            wall_s=0.0,
                            culprit="dataset.transform.transforms[1]",
                            culprit_kind="a lambda",
                            error="PicklingError: Can't pickle <function <lambda>>",
                            where="data.py:12",
                        ),
                    ),
                ),
            ),
            message="dataset.transform.transforms[1] is a lambda, which cannot be pickled: the 2 workers (spawn) cannot start",
        ),
        Example(
            title="The same with forked workers: a remark",
            evidence=(
                PartPickles(
                    num_workers=2,
                    start_method="fork",
                    persistent_workers=False,
                    parts=(
                        PartPickle(
                            part="collate_fn",
                            size_bytes=None,
                            wall_s=0.0,
                            culprit="collate_fn",
                            culprit_kind="the function make_loader.<locals>.collate",
                            error="AttributeError: Can't pickle local object",
                            where="data.py:20",
                        ),
                    ),
                ),
            ),
            message="collate_fn is the function make_loader.<locals>.collate, which cannot be pickled: works while workers are "
            "forks, not on Windows, on macOS, or by default from Python 3.14 on",
        ),
    )
    healthy = (
        Example(
            title="Forked workers, and parts that travel",
            evidence=(
                PartPickles(
                    num_workers=2,
                    start_method="fork",
                    persistent_workers=False,
                    parts=(
                        PartPickle(part="dataset", size_bytes=900, wall_s=0.001),
                        PartPickle(part="collate_fn", size_bytes=60, wall_s=0.001),
                    ),
                ),
            ),
        ),
        Example(
            title="Everything travels",
            evidence=(
                PartPickles(
                    num_workers=2,
                    start_method="spawn",
                    persistent_workers=False,
                    parts=(PartPickle(part="dataset", size_bytes=1_200, wall_s=0.001),),
                ),
            ),
        ),
    )


def _finding(part: PartPickle, seen: PartPickles, *, fails_now: bool) -> Finding:
    what = f"{part.culprit or part.part} is {part.culprit_kind or 'something'}, which cannot be pickled"
    if fails_now:
        noun = "worker" if seen.num_workers == 1 else "workers"
        effect = f"the {seen.num_workers} {noun} ({seen.start_method}) cannot start"
    else:
        effect = "works while workers are forks, not on Windows, on macOS, or by default from Python 3.14 on"
    return Finding(
        message=f"{what}: {effect}",
        severity="error" if fails_now else "info",
        basis="experiment",
        stage="start of workers",
        where=part.where or part.culprit,
        evidence={"part": part.part, "path": part.culprit, "error": part.error},
    )
