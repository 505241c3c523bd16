"""HR505 different-data-with-workers: the same sample is another one, or an error, when a worker prepares it."""

from __future__ import annotations

from headrace.doctor.evidence.workers import FieldDifference, WorkerComparison, WorkerError
from headrace.doctor.made_up.workers import compared, difference, error
from headrace.doctor.questions.workers import asleep
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, listing, named, quoted, verb

LOST_SETTING = Fix(
    text="Give settings to the data set's constructor instead of setting module variables, environment or library options in "
    "the training process: a worker has the data set, and may not have those.",
    safety="the data that one process delivers",
    snippet="dataset = Records(path, scale=2.0)   # instead of  records.SCALE = 2.0",
)


class DifferentDataWithWorkers(Rule):
    """HR505."""

    code = "HR505"
    name = "different-data-with-workers"
    summary = "Samples that differ, or fail, in workers, and are fine in one process."
    rationale = """
        The same sample should be the same, whoever prepares it. Workers that are forked share the position of every
        file that was opened before: while one seeks and reads, another one moves it, and each gets pieces of the
        other's data. Archives report a bad checksum although the file is whole; plain binary files just deliver wrong
        values, and training goes on with them. Settings that are made under `if __name__ == "__main__"` are missing in
        workers that are spawned.

        It is no fault if a field is random: such fields differ in two reads of one process, too, and are left out. So
        are fields that only say which worker made the sample, and fields that one worker alone draws anew each time.
        Floats may differ in their last bits.
        """
    experiment = """
        The same samples are prepared by workers in two epochs and then twice by one process, under different seeds;
        fields are compared by digests, floats closely. What differs is asked of one worker alone, to see whether the
        workers disturb each other.
        """
    needs = (WorkerComparison,)
    fix = Fix(
        text="Open files in the worker, when the first sample is asked for, and not in __init__; keep nothing open that was "
        "opened before the workers started.",
        safety="the data that one process delivers",
        snippet="def __getitem__(self, index):\n"
        "    if self._pid != os.getpid():  # a worker of its own opens its own\n"
        "        self._file, self._pid = open(self.path, 'rb'), os.getpid()",
    )
    references = ("pytorch#11887", "pytorch#11929", "pytorch#1919", "numpy#18124", "vak#402", "LoFTR#90")

    def judge(self, seen: WorkerComparison) -> list[Finding]:
        """One finding for values, one for errors."""
        found = [one for one in seen.differences if one.lone_worker in {"equal", "different"}]
        findings = [self._differs(found, seen)] if found else []
        if seen.errors:
            findings.append(self._fails(seen.errors, seen))
        return findings

    @staticmethod
    def _differs(found: list[FieldDifference], seen: WorkerComparison) -> Finding:
        worst = max(found, key=lambda one: one.num_different)
        disturb = any(one.lone_worker == "equal" for one in found)
        fields = listing([one.field for one in found])
        why = (
            "one worker alone delivers the right values, so the workers disturb each other, as they do when they share an "
            "open file"
            if disturb
            else "one worker alone delivers the other values too"
        )
        return Finding(
            message=f"field {fields} of {worst.num_different:,} of {count(worst.num_compared, 'sample')} "
            f"{verb(worst.num_different, 'is', 'are')} not what one process reads {named(worst.sample_ids)}: {why}",
            severity=asleep(seen.num_own_workers, "error" if disturb else "warning"),
            confidence=1.0 if disturb else 0.8,
            basis="experiment",
            stage="workers",
            sample_ids=worst.sample_ids,
            fix=None if disturb else LOST_SETTING,
            evidence={
                "fields": {one.field: one.num_different for one in found},
                "num_compared": worst.num_compared,
                "num_workers": seen.num_workers,
                "start_method": seen.start_method,
                "lone_worker": worst.lone_worker,
            },
        )

    @staticmethod
    def _fails(errors: tuple[WorkerError, ...], seen: WorkerComparison) -> Finding:
        first = errors[0]
        total = sum(one.num_errors for one in errors)
        ids = tuple(dict.fromkeys(one for error in errors for one in error.sample_ids))
        doing = {"worker_init_fn": "worker_init_fn fails", "collate": "collate fails"}.get(first.stage, "samples fail")
        place = f" {named(first.sample_ids)}" if first.sample_ids else ""
        return Finding(
            message=f"{doing} in workers, and not in one process: {quoted(first.error_type, first.message)}{place}, "
            f"{count(total, 'error')} in two epochs",
            severity=asleep(seen.num_own_workers, "error"),
            confidence=0.95,
            basis="experiment",
            stage=first.stage,
            sample_ids=ids,
            where=first.at,
            evidence={
                "errors": {one.error_type: one.num_errors for one in errors},
                "num_workers": seen.num_workers,
                "start_method": seen.start_method,
            },
        )

    sick = (
        Example(
            title="Workers that share the position of one open file",
            evidence=(compared(difference("image", 5)),),
            message="field image of 5 of 64 samples are not what one process reads (first sample 0): one worker alone delivers "
            "the right values, so the workers disturb each other, as they do when they share an open file",
            sample_ids=(0, 1, 2, 3, 4),
        ),
        Example(
            title="An archive that was opened before the workers started",
            evidence=(compared(errors=(error("BadZipFile", "Bad CRC-32 for file '3.npy'", num_errors=7),)),),
            message="samples fail in workers, and not in one process: BadZipFile: Bad CRC-32 for file '3.npy' (sample 3), "
            "7 errors in two epochs",
            sample_ids=(3,),
        ),
        Example(
            title="A setting that spawned workers do not have",
            evidence=(compared(difference("image", 1, lone_worker="different"), start_method="spawn"),),
            message="field image of 1 of 64 samples is not what one process reads (sample 0): one worker alone delivers the "
            "other values too",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(title="Equal data", evidence=(compared(),)),
        Example(
            title="A field that each worker draws from a seed of its own",
            evidence=(compared(difference("image", 64, lone_worker="varies")),),
        ),
    )
