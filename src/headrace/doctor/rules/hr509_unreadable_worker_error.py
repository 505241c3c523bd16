"""HR509 unreadable-worker-error: an exception that loses its type, or everything, on the way out of a worker."""

from __future__ import annotations

from headrace.doctor.evidence.workers import WorkerEnds, WorkerError
from headrace.doctor.made_up.workers import error, fared
from headrace.doctor.questions.workers import asleep
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, quoted


class UnreadableWorkerError(Rule):
    """HR509."""

    code = "HR509"
    name = "unreadable-worker-error"
    summary = "Exceptions in workers that arrive in the training process as another type, or not at all."
    rationale = """
        Torch sends the class and the text of a worker's exception to the training process and makes a new exception of
        that class from the text alone. A class whose constructor wants anything else cannot be made: a RuntimeError
        takes its place, which no `except` of the user's own catches, or a TypeError about missing arguments hides the
        real message. A class that cannot be pickled (defined inside a function) is not sent at all: the worker prints
        something about pickling, and the loader waits for ever.

        It is no fault that the text gains "Caught ... in DataLoader worker process", nor that attributes are lost while
        the type stays.
        """
    experiment = """
        Exceptions that leave the user's code in a worker are taken through torch's own wrapper, there in the worker; two
        samples that are known to fail are taken along.
        """
    needs = (WorkerEnds,)
    fix = Fix(
        text="Define the exception at the top of a module, and let its constructor accept a single text.",
        safety="same data; the real message arrives",
        snippet="class BrokenRecord(Exception):\n"
        "    def __init__(self, message, record=None):\n"
        "        super().__init__(message)\n"
        "        self.record = record",
    )
    references = ("pytorch#30147", "pytorch#34130", "pytorch#25522", "pytorch#16647", "pytorch#140911")

    def judge(self, seen: WorkerEnds) -> list[Finding]:
        """One finding for each type of exception that does not arrive as itself."""
        found = [one for one in seen.errors if one.arrives_as != one.error_type]
        return [self._find(one, seen) for one in found]

    @staticmethod
    def _find(one: WorkerError, seen: WorkerEnds) -> Finding:
        place = f" {named(one.sample_ids)}" if one.sample_ids else ""
        becomes = (
            "cannot be sent to the training process, which waits for ever"
            if one.arrives_as is None
            else f"arrives in the training process as {one.arrives_as}"
        )
        return Finding(
            message=f"{one.error_type} raised in a worker{place} {becomes}; it says: "
            f"{quoted(one.error_type, one.message)}",
            severity=asleep(seen.num_own_workers, "error" if one.arrives_as is None else "warning"),
            basis="experiment",
            stage=one.stage,
            sample_ids=one.sample_ids,
            where=one.at,
            evidence={"error_type": one.error_type, "arrives_as": one.arrives_as, "num_errors": one.num_errors},
        )

    sick = (
        Example(
            title="A constructor that takes two arguments",
            evidence=(fared(errors=(error("BrokenRecord", "record 3: no boxes", arrives_as="RuntimeError"),)),),
            message="BrokenRecord raised in a worker (sample 3) arrives in the training process as RuntimeError; it says: "
            "BrokenRecord: record 3: no boxes",
            sample_ids=(3,),
        ),
        Example(
            title="A class inside a function",
            evidence=(fared(errors=(error("Broken", "no boxes", arrives_as=None),)),),
            message="Broken raised in a worker (sample 3) cannot be sent to the training process, which waits for ever; it says: "
            "Broken: no boxes",
            sample_ids=(3,),
        ),
    )
    healthy = (
        Example(title="An ordinary exception", evidence=(fared(errors=(error("ValueError", "no boxes"),)),)),
        Example(title="No exception", evidence=(fared(),)),
    )
