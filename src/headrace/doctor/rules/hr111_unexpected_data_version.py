"""HR111 unexpected-data-version: the data on disk are not those that the repository records."""

from __future__ import annotations

from headrace.doctor.evidence.source import DataVersions, VersionMismatch
from headrace.doctor.rule import Example, Finding, Fix, Rule

DIFFERENT = VersionMismatch(
    record="data/train.dvc", path="data/train", what="number of files", recorded="1200", found="1187"
)


class UnexpectedDataVersion(Rule):
    """HR111."""

    code = "HR111"
    name = "unexpected-data-version"
    summary = "Data files that differ from what the .dvc files or dvc.lock of the repository say of them."
    rationale = """
        With DVC the repository says which version of the data belongs to which version of the code, but nothing makes
        the files on disk follow it: after `git checkout` or `git pull` without `dvc checkout`, or after files were
        added by hand, the code of one version trains on the data of another. Results then cannot be repeated, and
        nothing fails.

        It is no fault to train on data that no record speaks of, nor if a `.dvcignore` leaves files out: such folders
        are not compared. Files of which only the pointer is there are HR102.
        """
    experiment = """
        For each file that was opened, `.dvc` files and `dvc.lock` beside and above it are read; number of files, size
        and, up to 64 MiB, content hash are compared. DVC is not needed, only PyYAML to read its files, and nothing
        is changed.
        """
    needs = (DataVersions,)
    fix = Fix(
        text="If the repository is right, get its data; if the data are right, record them.",
        safety="dvc checkout replaces the files on disk; dvc status only looks",
        snippet="$ dvc status\n$ dvc checkout",
    )
    references = ("DVC, dvc checkout",)

    def judge(self, seen: DataVersions) -> list[Finding]:
        """At most one finding."""
        if not seen.mismatches:
            return []
        first = seen.mismatches[0]
        more = len(seen.mismatches) - 1
        others = f"; {more} more {'record differs' if more == 1 else 'records differ'}" if more else ""
        return [
            Finding(
                message=f"{first.path} is not the version that {first.record} records: {first.what} is {first.found}, "
                f"recorded {first.recorded}{others}",
                severity="warning",
                basis="static",
                confidence=0.9,
                stage="read",
                where=first.record,
                evidence={
                    "mismatches": [
                        {"path": one.path, "what": one.what, "recorded": one.recorded, "found": one.found}
                        for one in seen.mismatches[:20]
                    ],
                    "num_records": seen.num_records,
                },
            )
        ]

    sick = (
        Example(
            title="Files are missing from a folder",
            evidence=(DataVersions(num_records=1, mismatches=(DIFFERENT,)),),
            message="data/train is not the version that data/train.dvc records: number of files is 1187, recorded 1200",
        ),
        Example(
            title="A file has other content, and so has a second one",
            evidence=(
                DataVersions(
                    num_records=2,
                    mismatches=(
                        VersionMismatch(
                            record="dvc.lock", path="data/x.npy", what="md5", recorded="a304afb9", found="5d41402a"
                        ),
                        DIFFERENT,
                    ),
                ),
            ),
            message="data/x.npy is not the version that dvc.lock records: md5 is 5d41402a, recorded a304afb9; "
            "1 more record differs",
        ),
    )
    healthy = (
        Example(title="Data as recorded", evidence=(DataVersions(num_records=3, mismatches=()),)),
        Example(title="No records", evidence=(DataVersions(num_records=0, mismatches=()),)),
    )
