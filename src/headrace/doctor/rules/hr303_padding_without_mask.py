"""HR303 padding-without-mask: batches in which added values cannot be told from real ones."""

from __future__ import annotations

from headrace.doctor.evidence.batches import PaddedField, Paddings
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, verb

COLLATE = "collate (train.py:12)"


class PaddingWithoutMask(Rule):
    """HR303."""

    code = "HR303"
    name = "padding-without-mask"
    summary = "A collate function that fills samples up with a value that real data hold too, and hands over no mask."
    rationale = """
        Sequences of several lengths become one array when the short ones are filled up. If the filling is token 0, and
        token 0 is a word, the network reads sentences that nobody wrote, attends to them, and learns to predict them.
        Nothing raises an error; the model is only worse, and worse for short samples.

        It is no fault if the batch says which places are real: by a mask, by lengths, by offsets, or by another field
        that is filled with a value of its own (labels with -100). Nor if the filling is a value that no sample holds,
        so that the network or the loss can tell (a reserved id), nor for packed and nested sequences.
        """
    experiment = """
        Up to eight samples of several lengths are joined by the loader's own collate function, and the batch is searched
        for each sample's values, in any order, at the beginning or the end of a row.
        """
    needs = (Paddings,)
    fix = Fix(
        text="Reserve an id for the filling, or hand over a mask (or the lengths), and let the network and the loss use it.",
        safety="same values; the batch gets one more field",
        snippet="def collate(samples):\n"
        "    ids, labels = zip(*samples)\n"
        "    lengths = torch.tensor([len(one) for one in ids])\n"
        "    ids = pad_sequence(ids, batch_first=True, padding_value=PAD)\n"
        "    mask = torch.arange(ids.shape[1])[None] < lengths[:, None]\n"
        '    return {"ids": ids, "attention_mask": mask, "labels": labels}',
    )
    references = ("icae#3", "Multimodal-Transformer#34", "mead-baseline#20")

    def judge(self, seen: Paddings) -> list[Finding]:
        """At most one finding: one mask would tell of all fields."""
        unmarked = [field for field in seen.fields if field.marked_by is None and field.num_real]
        return [_finding(unmarked, seen)] if unmarked else []

    sick = (
        Example(
            title="Filled with token 0, which is a word",
            evidence=(
                Paddings(
                    collate=COLLATE,
                    sample_ids=(0, 1, 2),
                    fields=(
                        PaddedField(
                            field="0",
                            batch_field="0",
                            lengths=(3, 14),
                            fill="0",
                            num_padded=21,
                            num_real=7,
                            real_ids=(0, 2),
                            marked_by=None,
                        ),
                    ),
                ),
            ),
            message="collate (train.py:12) fills field '0' up from 3..14 to one length with 0, which is a real value in 2 "
            "samples (7 times), and the batch has neither mask nor lengths",
            sample_ids=(0, 2),
        ),
        Example(
            title="Silence that is filled up with silence",
            evidence=(
                Paddings(
                    collate=COLLATE,
                    sample_ids=("a.wav", "b.wav"),
                    fields=(
                        PaddedField(
                            field="wave",
                            batch_field="waves",
                            lengths=(800, 900),
                            fill="0",
                            num_padded=100,
                            num_real=1,
                            real_ids=("a.wav",),
                            marked_by=None,
                        ),
                    ),
                ),
            ),
            message="collate (train.py:12) fills field 'wave' up from 800..900 to one length with 0, which is a real value "
            "in 1 sample (1 time), and the batch has neither mask nor lengths",
            sample_ids=("a.wav",),
        ),
    )
    healthy = (
        Example(
            title="A mask beside it",
            evidence=(
                Paddings(
                    collate=COLLATE,
                    sample_ids=(0, 1),
                    fields=(
                        PaddedField(
                            field="ids",
                            batch_field="ids",
                            lengths=(3, 5),
                            fill="0",
                            num_padded=2,
                            num_real=1,
                            real_ids=(0,),
                            marked_by="attention_mask",
                        ),
                    ),
                ),
            ),
        ),
        Example(
            title="Filled with an id that is no word",
            evidence=(
                Paddings(
                    collate=COLLATE,
                    sample_ids=(0, 1),
                    fields=(
                        PaddedField(
                            field="ids",
                            batch_field="ids",
                            lengths=(3, 5),
                            fill="1",
                            num_padded=2,
                            num_real=0,
                            real_ids=(),
                            marked_by=None,
                        ),
                    ),
                ),
            ),
        ),
        Example(title="Nothing is filled up", evidence=(Paddings(collate=COLLATE, sample_ids=(0, 1), fields=()),)),
    )


def _finding(fields: list[PaddedField], seen: Paddings) -> Finding:
    field = fields[0]
    shortest, longest = field.lengths
    others = [repr(other.field) for other in fields[1:] if other.field != field.field]
    likewise = f"; likewise {', '.join(dict.fromkeys(others))}" if others else ""
    return Finding(
        message=f"{seen.collate} fills field {field.field!r} up from {shortest}..{longest} to one length with {field.fill}, "
        f"which is a real value in {count(len(field.real_ids), 'sample')} ({field.num_real:,} "
        f"{verb(field.num_real, 'time', 'times')}), and the batch has neither mask nor lengths{likewise}",
        severity="warning",
        confidence=0.8,
        basis="experiment",
        stage="collate",
        sample_ids=field.real_ids,
        where=seen.collate,
        evidence={
            "field": field.field,
            "batch_field": field.batch_field,
            "fill": field.fill,
            "num_padded": field.num_padded,
            "num_real": field.num_real,
        },
    )
