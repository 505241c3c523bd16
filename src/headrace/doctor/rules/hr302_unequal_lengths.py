"""HR302 unequal-lengths: sequences of several lengths that the loader's collate cannot join."""

from __future__ import annotations

import re

from headrace.doctor.evidence import CollateTrial, LoaderFacts, SampleRead, SampleReads
from headrace.doctor.made_up import collated, label, loader, ok, reads, values
from headrace.doctor.questions.samples import blame, grouped, is_bare, joins_samples
from headrace.doctor.rule import Example, Finding, Fix, Rule

ITEM = re.compile(r"^(.+?)\.(\d+)(?:\.|$)")
"""`objects.3.box` -> (`objects`, `3`): one item of a list inside the sample."""


class UnequalLengths(Rule):
    """HR302."""

    code = "HR302"
    name = "unequal-lengths"
    summary = "Sequences (tokens, lists, signals) of several lengths that the loader's collate cannot join."
    rationale = """
        Text, audio and lists of objects have a length of their own. Torch's default rules refuse them ("each element
        in list of batch should be of equal size"), or fail to stack; either way without the name of a sample.

        It is no fault if lengths differ and a collate function of your own was seen to join them, if the loader never
        joins samples, or if what differs is a string: strings are kept as a list. Padding without a mask is HR303.
        """
    experiment = """
        The lengths of the one-dimensional fields and of the lists in the chosen samples are compared, each sample
        prepared alone; then the same samples are joined by the loader's own collate function in one process.
        """
    needs = (SampleReads, CollateTrial, LoaderFacts)
    fix = Fix(
        text="Pad to the longest sequence of the batch and keep the lengths, so that the loss can leave the padding out.",
        safety="same tokens; the batch has a new field, and the padding value must not be a token of its own",
        snippet="from torch.nn.utils.rnn import pad_sequence\n\n\n"
        "def collate(samples):\n"
        "    lengths = torch.tensor([len(tokens) for tokens in samples])\n"
        "    tokens = [torch.as_tensor(tokens) for tokens in samples]\n"
        "    padded = pad_sequence(tokens, batch_first=True, padding_value=-1)\n"
        "    return padded, lengths",
    )
    references = ("captcha-recognition-pytorch#1", "SimpleTuner#2647", "DALLE-pytorch#33")

    def judge(self, seen: SampleReads, trial: CollateTrial, facts: LoaderFacts) -> list[Finding]:
        """One finding for each field or list whose length differs."""
        if not joins_samples(facts):
            return []
        by_field = grouped((field, (read, length)) for read in seen.ok for field, length in _lengths(read).items())
        findings = []
        for field, cases in by_field.items():
            by_length = grouped((length, read.sample_id) for read, length in cases)
            usual = max(by_length, key=lambda length: len(by_length[length]))
            odd_ids = tuple(read.sample_id for read, length in cases if length != usual)
            sure = blame(trial, odd_ids) if odd_ids else 0.0
            if sure >= 0.5:
                shortest, longest = min(by_length), max(by_length)
                findings.append(
                    Finding(
                        message=f"field {field!r} has lengths from {shortest:,} (sample {by_length[shortest][0]}) to "
                        f"{longest:,} (sample {by_length[longest][0]}) in {len(cases):,} examined samples, and "
                        f"{trial.collate} does not join them",
                        severity="warning" if is_bare(facts) else "error",
                        confidence=min(sure, 0.7) if is_bare(facts) else sure,
                        stage="collate",
                        sample_ids=odd_ids,
                        where=trial.error_at,
                        evidence={
                            "field": field,
                            "num_lengths": len(by_length),
                            "shortest": shortest,
                            "longest": longest,
                        },
                    )
                )
        return findings

    sick = (
        Example(
            title="Token tensors of several lengths",
            evidence=(
                reads(
                    ok(values("ids", 5, dtype="int64")),
                    ok(values("ids", 7, dtype="int64")),
                    ok(values("ids", 5, dtype="int64")),
                ),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(1,)),
                loader(num_samples=3),
            ),
            message="field 'ids' has lengths from 5 (sample 0) to 7 (sample 1) in 3 examined samples, and "
            "default_collate does not join them",
            sample_ids=(1,),
        ),
        Example(
            title="Lists of objects, one entry per object",
            evidence=(
                reads(
                    ok(values("objects.0.box", 4)),
                    ok(values("objects.0.box", 4), values("objects.1.box", 4)),
                    ok(values("objects.0.box", 4)),
                ),
                collated(ids=(0, 1, 2), error_type="RuntimeError", odd_ids=(1,)),
                loader(num_samples=3),
            ),
            message="field 'objects' has lengths from 1 (sample 0) to 2 (sample 1) in 3 examined samples, and "
            "default_collate does not join them",
            sample_ids=(1,),
        ),
    )
    healthy = (
        Example(
            title="Several lengths that the user's own collate function pads",
            evidence=(
                reads(ok(values("ids", 5, dtype="int64")), ok(values("ids", 7, dtype="int64"))),
                collated(values("ids", 2, 7, dtype="int64"), own="pad (train.py:9)"),
                loader(collate="pad (train.py:9)"),
            ),
        ),
        Example(
            title="Captions of several lengths: strings are kept as a list",
            evidence=(
                reads(
                    ok(values("text", 12, kind="string", dtype="str"), label(1)),
                    ok(values("text", 40, kind="string", dtype="str"), label(0)),
                ),
                collated(label(0)),
                loader(),
            ),
        ),
        Example(
            title="Several lengths in a loader that does not batch",
            evidence=(
                reads(ok(values("ids", 5, dtype="int64")), ok(values("ids", 7, dtype="int64"))),
                collated(error_type="RuntimeError", odd_ids=(1,)),
                loader(batch_size=None, collate="default_convert", num_batches=4),
            ),
        ),
    )


def _lengths(read: SampleRead) -> dict[str, int]:
    """Length of each one-dimensional field, and number of items of each list inside the sample."""
    lengths = {
        view.field: view.shape[0]
        for view in read.fields
        if view.kind in {"tensor", "array", "sequence"} and view.shape is not None and len(view.shape) == 1
    }
    # An empty list has no shape.
    lengths |= {view.field: 0 for view in read.fields if view.kind == "sequence" and view.shape is None}
    matches = [match for view in read.fields if (match := ITEM.match(view.field))]
    items = grouped((match[1], match[2]) for match in matches)
    return lengths | {field: len(set(numbers)) for field, numbers in items.items()}
