"""What makes a finding the same one again in another run: its rule, place and samples, and nothing that merely moves."""

from __future__ import annotations

import hashlib
import json

from headrace.doctor.report.model import FindingRow, KnownRow
from headrace.doctor.report.places import source_line
from headrace.doctor.report.visible import visible_text

__all__ = ["Identity", "fingerprint", "identity", "known_row"]

Identity = tuple[str, str | None, str | None, str | None]
"""(code, place, field, split)."""


def known_row(row: FindingRow) -> KnownRow:
    """Returns what is remembered of a finding; texts as they can be shown, because a file keeps nothing else."""
    place, field = _steady_place(row), row.evidence.get("field")
    return KnownRow(
        code=row.code,
        place=None if place is None else visible_text(place),
        field=None if field is None else visible_text(str(field)),
        split=row.split,
        sample_ids=[visible_text(one) if isinstance(one, str) else one for one in row.sample_ids],
        message=visible_text(row.message),
    )


def identity(known: KnownRow) -> Identity:
    """Returns what two findings must share to be about the same fault; which samples show it is compared apart."""
    return (known.code, known.place, known.field, known.split)


def fingerprint(row: FindingRow) -> str:
    """Returns 32 hexadecimal digits: equal for the same fault of the same samples, whatever lines and counts do."""
    known = known_row(row)
    ids = sorted({json.dumps(sample_id) for sample_id in known.sample_ids})
    text = json.dumps([*identity(known), ids], ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _steady_place(row: FindingRow) -> str | None:
    """The place without its line number. Where samples are named, a path is that of the first of them, and no more."""
    line = source_line(row.where)
    if line is not None:
        return line.file if line.function is None else f"{line.file} in {line.function}"
    return None if row.sample_ids else row.where
