"""What sides of ours should reach, beside what they reached: words in the table, never a test or an exit status."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from benchmarks.regime import LIMIT, PEERS, Target


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """One target, and the values of the rounds it is compared with."""

    target: Target
    values: list[float]
    """The ratio ours / theirs of each round, or the value itself; empty: not measured."""
    reference: str | None = None
    """The side that the ratio is with."""

    @property
    def middle(self) -> float:
        """The value that is compared."""
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool:
        """True if the median reaches the target."""
        lowest, highest = self.target.at_least, self.target.at_most
        return (lowest is None or self.middle >= lowest) and (highest is None or self.middle <= highest)

    @property
    def asked(self) -> str:
        """The target in words."""
        wanted = [f"≥ {self.target.at_least:g}"] if self.target.at_least is not None else []
        wanted += [f"≤ {self.target.at_most:g}"] if self.target.at_most is not None else []
        reference = self.reference or self.target.against.replace("|", " or ")
        of = f" of {reference}" if self.target.against else f" {self.target.unit}"
        return " and ".join(wanted) + of.rstrip()

    @property
    def found(self) -> str:
        """The comparison in words: met, or missed by how much of what was asked for."""
        if not self.values:
            return "not measured"
        if self.is_met:
            return "met"
        bound = self.target.at_least if self.target.at_least is not None else self.target.at_most
        return f"missed by {100 * abs(self.middle - bound) / bound:,.0f} %" if bound else "missed"


def verdicts(record: dict[str, Any]) -> list[Verdict]:
    """Returns what a regime's record says about each of its targets."""
    return [judge(record, Target(**target)) for target in record.get("targets", ())]


def judge(record: dict[str, Any], target: Target) -> Verdict:
    """Compares one target with the rounds, within each round where it is a ratio."""
    ours = _rounds(record, target.side)
    if not target.against:
        return Verdict(
            target=target, values=[_number(values, target.key) for values in ours if _has(values, target.key)]
        )
    reference = best_of(record, [name for name, entry in record["sides"].items() if _is_meant(name, entry, target)])
    pairs = zip(ours, _rounds(record, reference), strict=False) if reference else ()
    values = [
        _number(mine, target.key) / _number(theirs, target.key)
        for mine, theirs in pairs
        if _has(mine, target.key) and _has(theirs, target.key) and theirs[target.key]
    ]
    return Verdict(target=target, values=values, reference=reference)


def best_of(record: dict[str, Any], names: list[str]) -> str | None:
    """The side with the best median among some; None if none of them was measured."""
    medians = {
        name: statistics.median(values["value"] for values in rounds)
        for name in names
        if (rounds := _rounds(record, name))
    }
    if not medians:
        return None
    return (max if record["more_is_better"] else min)(medians, key=medians.__getitem__)


def summary(records: list[dict[str, Any]]) -> str:
    """Returns all targets as one Markdown table."""
    rows = ["| regime | side | target | median | lowest to highest | |", "|---|---|---|--:|--:|---|"]
    for record in records:
        for verdict in verdicts(record):
            middle = f"{verdict.middle:.3g}" if verdict.values else ""
            between = f"{min(verdict.values):.3g} to {max(verdict.values):.3g}" if verdict.values else ""
            cells = [record["name"], verdict.target.side, verdict.asked, middle, between, verdict.found]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def _is_meant(name: str, entry: dict[str, Any], target: Target) -> bool:
    if target.against == PEERS:
        return entry["library"] not in {LIMIT, "headrace"}
    return name.startswith(tuple(target.against.split("|")))


def _rounds(record: dict[str, Any], side: str) -> list[dict[str, Any]]:
    entry = record["sides"].get(side)
    return [] if entry is None or "reason" in entry else entry["rounds"]


def _has(values: dict[str, Any], key: str) -> bool:
    return values.get(key) is not None


def _number(values: dict[str, Any], key: str) -> float:
    return float(values[key])
