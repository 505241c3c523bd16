"""From an identity back to its row: for replaying the one sample that a message names."""

from __future__ import annotations

from headrace.errors import ConfigurationError, SampleId, Where, nearest
from headrace.protocols import Source

__all__ = ["find_row"]

COMPARED_IDS = 20_000
"""Ids among which the nearest is looked for; difflib needs about a second for that many paths."""


def find_row(source: Source, sample_id: SampleId) -> int:
    """Returns the row of a sample: of an exact id first, else of a row number, also one typed as digits.

    Raises:
        ConfigurationError: there is no such sample; names the nearest id.

    Cost: through the source's own `index_of` if it has one, else one call of `sample_id` per row.
    """
    row = _exact_row(source, sample_id)
    if row is not None:
        return row
    number = int(sample_id) if isinstance(sample_id, int) or sample_id.isdecimal() else -1
    if 0 <= number < len(source):
        return number
    raise ConfigurationError(
        f"no sample has the id {sample_id!r}{_suggestion(source, sample_id)}",
        where=Where(path=repr(source)),
        do=f"give an id as `sample_ids` shows it, or a row number 0..{len(source) - 1}",
    )


def _exact_row(source: Source, sample_id: SampleId) -> int | None:
    index_of = getattr(source, "index_of", None)
    if index_of is not None:
        try:
            return int(index_of(sample_id))
        except ValueError:
            return None
    return next((row for row in range(len(source)) if source.sample_id(row) == sample_id), None)


def _suggestion(source: Source, sample_id: SampleId) -> str:
    """`; did you mean ...?` among the ids of the same last part or the same folder, and a first few of all."""
    wanted = str(sample_id)
    folder, _, name = wanted.rpartition("/")
    close: list[str] = []
    first: list[str] = []
    for row in range(len(source)):
        known = str(source.sample_id(row))
        if known.endswith("/" + name) or (folder and known.startswith(folder + "/")):
            close.append(known)
        elif len(first) < COMPARED_IDS:
            first.append(known)
    return nearest(wanted, close[:COMPARED_IDS]) or nearest(wanted, first)
