"""HR404 reused-buffer: samples or batches that are overwritten when the next one is made."""

from __future__ import annotations

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.batches import KeptBatches, Overwrite
from headrace.doctor.made_up import loader
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.errors import SampleId

OWN_MEMORY = Fix(
    text="Hand over memory that belongs to the sample or batch: copy out of the buffer, or make a new one each time.",
    safety="one more copy; nothing that was handed over changes any more",
    snippet="def __getitem__(self, index):\n"
    "    self.decode_into(self.buffer, index)\n"
    "    return torch.from_numpy(self.buffer.copy())",
)


def _kept(**more: object) -> KeptBatches:
    fields = {"sample": None, "batch": None, "copies_samples": False, "num_batches": 4, **more}
    return KeptBatches(**fields)  # type: ignore[arg-type]


def _overwrite(what: str, first: SampleId, second: SampleId, buffer: str | None = None) -> Overwrite:
    return Overwrite(
        what=what,  # type: ignore[arg-type]
        field="0",
        first=first,
        second=second,
        shares_memory=True,
        buffer=buffer,
    )


class ReusedBuffer(Rule):
    """HR404."""

    code = "HR404"
    name = "reused-buffer"
    summary = "Samples or batches handed over in memory that the next one is written into."
    rationale = """
        A buffer that is made once and filled for each sample saves an allocation, and hands out the same memory again and
        again. `torch.from_numpy(self.buffer)` does not copy: by the time a batch is stacked, all its samples are the last
        one. A collate function that returns its own buffer changes the batch that the loop still holds, that an
        asynchronous copy to the device still reads, or that was kept for a comparison; with workers the shared memory is
        overwritten while the trainer reads it.

        It is no fault if samples are views of one large array, each of its own part, if the data set copies out of its
        buffer, or if the loader takes one sample at a time and stacks it, which copies.
        """
    experiment = """
        A few samples, and then a few batches, are made one after another without workers; after each, the earlier ones
        are held against what they were.
        """
    needs = (KeptBatches, LoaderFacts)
    fix = OWN_MEMORY
    references = ("pytorch#137951", "pytorch#140296", "tutorials#3261", "pytorch#127612")

    def judge(self, seen: KeptBatches, facts: LoaderFacts) -> list[Finding]:
        """At most one finding: samples that overwrite each other are the root of batches that do."""
        if seen.sample is not None and not (seen.copies_samples and seen.batch is None):
            return [_sample_finding(seen.sample, facts)]
        return [] if seen.batch is None else [_batch_finding(seen.batch)]

    sick = (
        Example(
            title="A buffer of the data set",
            evidence=(_kept(sample=_overwrite("sample", 0, 1, "dataset.buffer")), loader()),
            message="sample 0 is overwritten when sample 1 is read: field '0' of both lies in dataset.buffer, so that the "
            "samples of a batch of 4 are all the last one",
            sample_ids=(0,),
        ),
        Example(
            title="A collate function with a buffer of its own",
            evidence=(_kept(batch=_overwrite("batch", "batch 1", "batch 2")), loader()),
            message="batch 1 is overwritten when batch 2 is made: field '0' of both lies in the same memory",
        ),
    )
    healthy = (
        Example(title="Memory of their own", evidence=(_kept(), loader())),
        Example(
            title="One sample at a time, copied by stacking",
            evidence=(_kept(sample=_overwrite("sample", 0, 1), copies_samples=True), loader(batch_size=1)),
        ),
    )


def _sample_finding(found: Overwrite, facts: LoaderFacts) -> Finding:
    size = facts.batch_size
    effect = f", so that the samples of a batch of {size} are all the last one" if size is not None and size > 1 else ""
    return Finding(
        message=f"sample {found.first} is overwritten when sample {found.second} is read: {_place(found)}{effect}",
        severity="error",
        confidence=1.0,
        basis="experiment",
        stage="read",
        sample_ids=(found.first,),
        where=found.buffer,
        evidence={"field": found.field, "buffer": found.buffer, "shares_memory": found.shares_memory},
    )


def _batch_finding(found: Overwrite) -> Finding:
    return Finding(
        message=f"{found.first} is overwritten when {found.second} is made: {_place(found)}",
        severity="error",
        confidence=1.0,
        basis="experiment",
        stage="collate",
        where=found.buffer,
        evidence={"field": found.field, "buffer": found.buffer, "shares_memory": found.shares_memory},
    )


def _place(found: Overwrite) -> str:
    memory = found.buffer or ("the same memory" if found.shares_memory else "memory that changed")
    return f"field {found.field!r} of both lies in {memory}"
