"""Breach: one thing that is not as the contract says, named by sample and field."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headrace.errors import ContractViolation, SampleId, Where

__all__ = ["Breach", "require_none"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One thing that is not as the contract says."""

    sample_id: SampleId | None
    """None: no single sample; see `subject`."""
    field: str | None
    """None: the sample or the batch as a whole."""
    expected: str
    """What the contract says, e.g. `shape (3, H, W)`."""
    found: str
    """What is there, e.g. `shape (16, 16, 3)`."""
    hint: str | None = None
    """What probably happened, or what to do; None if there is nothing to add."""
    subject: str = "the batch"
    """Who breaks the contract if it is no single sample."""
    is_incomplete: bool = False
    """True if something is missing: the contract's `incomplete` says what to do with such a sample."""

    @property
    def message(self) -> str:
        """The breach as one sentence."""
        place = [self.subject if self.sample_id is None else f"sample {self.sample_id}"]
        place += [] if self.field is None else [f"field {self.field}"]
        hint = f"; {self.hint}" if self.hint else ""
        return f"{', '.join(place)}: expected {self.expected}, found {self.found}{hint}"


def require_none(breaches: Sequence[Breach]) -> None:
    """Raises ContractViolation for the first breach, and counts the others; does nothing without breaches."""
    if not breaches:
        return
    first = breaches[0]
    others = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
    place = "" if first.field is None else f"field {first.field}: "
    raise ContractViolation(
        f"{place}expected {first.expected}, found {first.found}{others}",
        where=Where(sample_id=first.sample_id, field=first.field),
        why=first.hint,
        do="mend the sample, or change the contract and have the change reviewed",
    )
