"""ContractDiff: what changed from one contract to another, line by line, as a reviewer reads it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Change", "ContractDiff", "compare"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field, or one setting of the whole contract, that differs."""

    name: str
    before: str | None
    """None: it was not there."""
    after: str | None
    """None: it is not there any more."""


@dataclasses.dataclass(frozen=True, slots=True)
class ContractDiff:
    """What changed; true if anything did. `str()` gives lines with `-` for before and `+` for after."""

    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        lines = []
        for change in self.changes:
            lines += [] if change.before is None else [f"- {change.name}: {change.before}"]
            lines += [] if change.after is None else [f"+ {change.name}: {change.after}"]
        return "\n".join(lines) or "no difference"


def compare(before: Mapping[str, Any], after: Mapping[str, Any], spell: Callable[[Any], str]) -> ContractDiff:
    """Compares values by name, in the order of `before`, then what is new.

    The order itself is part of a contract (a tuple's parts have no other names), so a pure change of order shows as a
    change of `order`.
    """
    changes = [
        Change(
            name=name,
            before=spell(before[name]) if name in before else None,
            after=spell(after[name]) if name in after else None,
        )
        for name in {**before, **after}
        if name not in before or name not in after or before[name] != after[name]
    ]
    if not changes and list(before) != list(after):
        changes = [Change(name="order", before=", ".join(before), after=", ".join(after))]
    return ContractDiff(tuple(changes))
