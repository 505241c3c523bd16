"""HR112 intermittent-failure: a sample fails in one reading and comes out in another."""

from __future__ import annotations

from headrace.doctor.evidence.chance import ChanceFailure, ChanceFailures
from headrace.doctor.made_up.chance import by_chance, chance_failure
from headrace.doctor.questions.workers import asleep
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, named, quoted

DRAWN = Fix(
    text="Let the random step draw from what fits each sample: a crop no larger than the image, an interval no longer than "
    "the record. The sample fails again under the same seed, so the draw can be looked at.",
    safety="draws of samples that never failed stay as they are, if their range does",
    snippet="height, width = image.shape[-2:]\n"
    "size = min(self.size, height, width)\n"
    "top = torch.randint(0, height - size + 1, ()).item()",
)


class IntermittentFailure(Rule):
    """HR112."""

    code = "HR112"
    name = "intermittent-failure"
    summary = "Samples that raise an error in some readings and come out in others."
    rationale = """
        A store that answers late, a mounted folder that is away for a second, a random crop that is larger than a few
        of the images: each fails once in a hundred or a million readings. The run ends on the third night, the sample
        that the traceback names is fine when it is looked at, and so the worker, the library or the machine is
        blamed.

        It is no fault if the code itself tries again, or if a sample fails in every reading: that is HR101. What fails
        in workers only, and often, is HR505.
        """
    experiment = """
        Samples that failed are read up to twelve times more in the same process, under the same seed and under others.
        What failed in workers is read by one process until it fails there too, for some seconds.
        """
    needs = (ChanceFailures,)
    fix = Fix(
        text="Try again a few times where it fails, with a pause that grows, and let the error out after that: a lapse is "
        "survived, and a real fault still shows.",
        safety="the same data; a sample that fails takes longer",
        snippet="for attempt in range(5):\n"
        "    try:\n"
        "        raw = self.fetch(index)  # what fails now and then\n"
        "        break\n"
        "    except OSError:\n"
        "        if attempt == 4:\n"
        "            raise\n"
        "        time.sleep(0.1 * 2**attempt)",
    )

    references = (
        "webdataset#112",
        "OLMo#301",
        "villa#1244",
        "s3-connector-for-pytorch#293",
        "pytorch-CycleGAN-and-pix2pix#568",
        "liif#58",
    )

    def judge(self, seen: ChanceFailures) -> list[Finding]:
        """One finding for each type of error at each place."""
        return [_finding(one, seen.num_own_workers) for one in seen.failures]

    sick = (
        Example(
            title="A store that sometimes does not answer",
            evidence=(by_chance(chance_failure("TimeoutError", "the read operation timed out", 7)),),
            message="sample 7 fails now and then: 2 of 13 readings in one process failed, the others did not: TimeoutError: "
            "the read operation timed out",
            sample_ids=(7,),
        ),
        Example(
            title="A crop that is larger than a few images, for some draws",
            evidence=(
                by_chance(
                    chance_failure(
                        "ValueError", "empty range", 3, 9, num_read=26, num_failed=10, stage="transform", is_drawn=True
                    ),
                ),
            ),
            message="samples fail for some draws of a random step (first sample 3): 10 of 26 readings in one process failed, and those "
            "under an equal seed failed again: ValueError: empty range",
            sample_ids=(3, 9),
        ),
        Example(
            title="It was met in workers, and then in one process too",
            evidence=(
                by_chance(
                    chance_failure("OSError", "stale file handle", 12, num_read=140, num_failed=1, num_worker_errors=4)
                ),
            ),
            message="samples fail now and then (sample 12): 4 errors in workers, and 1 of 140 readings in one process failed, the "
            "others did not: OSError: stale file handle",
            sample_ids=(12,),
        ),
        Example(
            title="It was met in workers, too seldom to blame them",
            evidence=(
                by_chance(
                    chance_failure("OSError", "stale file handle", 12, num_read=200, num_failed=0, num_worker_errors=1)
                ),
            ),
            message="sample 12 fails now and then: 1 error in workers, and 200 readings in one process did not fail: OSError: "
            "stale file handle",
            sample_ids=(12,),
        ),
    )
    healthy = (
        Example(title="Nothing fails", evidence=(by_chance(),)),
        Example(title="Nothing fails in a loader without workers", evidence=(by_chance(num_own_workers=0),)),
    )


def _finding(one: ChanceFailure, num_own_workers: int) -> Finding:
    ids = one.sample_ids
    is_one = len(ids) == 1 and one.num_worker_errors <= 1
    subject, does = (f"sample {ids[0]}", "fails") if is_one else ("samples", "fail")
    how = f"{does} for some draws of a random step" if one.is_drawn else f"{does} now and then"
    in_workers = f"{count(one.num_worker_errors, 'error')} in workers, and " if one.num_worker_errors else ""
    if not one.num_failed:
        alone = f"{count(one.num_read, 'reading')} in one process did not fail"
    elif one.is_drawn:
        alone = (
            f"{one.num_failed:,} of {one.num_read:,} readings in one process failed, and those under an equal seed failed "
            "again"
        )
    else:
        alone = f"{one.num_failed:,} of {one.num_read:,} readings in one process failed, the others did not"
    return Finding(
        message=f"{subject} {how}{'' if is_one or not ids else f' {named(ids)}'}: {in_workers}{alone}: {quoted(one.error_type, one.message)}",
        severity="error" if one.num_failed else asleep(num_own_workers, "error"),
        confidence=1.0 if one.num_failed else 0.6,
        basis="experiment",
        stage=one.stage,
        sample_ids=one.sample_ids,
        where=one.at,
        fix=DRAWN if one.is_drawn else None,
        evidence={
            "error_type": one.error_type,
            "num_readings": one.num_read,
            "num_failed": one.num_failed,
            "num_worker_errors": one.num_worker_errors,
        },
    )
