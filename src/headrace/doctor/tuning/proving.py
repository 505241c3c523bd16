"""Proves that another setting of a loader delivers the same data, or names the first difference."""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence.equivalence import Equivalence, LevelResult
from headrace.doctor.sameness.compare import Options, compare
from headrace.doctor.sameness.delivering import SPENT
from headrace.doctor.sameness.text import verdict_line
from headrace.doctor.subject import Subject
from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.model import Proof
from headrace.errors import HeadraceError

__all__ = ["UnderSetting", "proof_of", "prove"]

ALL = 0.95
"""A comparison that took so much of its budget and told nothing was short of time."""


@dataclasses.dataclass(frozen=True, slots=True)
class UnderSetting:
    """Turns a target into the same one under another setting; called in the child that walks it."""

    setting: Setting

    def __call__(self, subject: Subject) -> Subject:
        """Returns it; the target itself is left as it is.

        Raises:
            CannotExamine: it cannot be set so.
        """
        realise = importlib.import_module("headrace.doctor.timing.realise").realise
        return Subject(realise(subject, self.setting))


def prove(
    target: Any,
    setting: Setting,
    *,
    seed: int,
    budget_s: float,
    max_samples: int | None,
    reshuffles: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Proof:
    """Compares a target as it is with the same one under a setting, up to E4.

    Args:
        target: TARGET as typed, or the loader.
        setting: What is changed.
        seed: Of both.
        budget_s: Seconds.
        max_samples: Of each epoch; None: all.
        reshuffles: True: the setting is known to shuffle otherwise from the second epoch on (`LoaderNow.reshuffles`).
        progress: Told what is being done.
    """
    options = Options(seed=seed, budget_s=budget_s, max_samples=max_samples)
    start = time.monotonic()
    try:
        found = compare(target, target, options, prepare=(None, UnderSetting(setting)), progress=progress)
    except HeadraceError as error:
        proof = Proof(same_data="unproven", says=error.what)
    else:
        proof = proof_of(found, reshuffles=reshuffles)
    is_late = proof.same_data == "unproven" and time.monotonic() - start > ALL * budget_s
    return dataclasses.replace(proof, is_unfinished=proof.is_unfinished or is_late)


def proof_of(found: Equivalence, *, reshuffles: bool = False) -> Proof:
    """Returns what a comparison says.

    Args:
        found: The comparison.
        reshuffles: True: another order from the second epoch on is another shuffle, and not other data. Samples, targets and
            fields are compared all the same, whatever the order.
    """
    if reshuffles and (rest := _without_later_order(found)) is not None:
        proof = proof_of(rest)
        return dataclasses.replace(
            proof, says=f"{proof.says}; from the second epoch on another shuffle under the same seed"
        )
    says = verdict_line(found)
    if found.verdict == "same":
        by = "" if found.policy in {None, "counter"} else f", random fields by the policy {found.policy}"
        return Proof(same_data="proven", says=f"{says.removeprefix('the same data: ')}{by}")
    if found.verdict == "different":
        level = found.first_level
        return Proof(
            same_data="differs",
            says=says.replace(" in A", " as it is").replace(" in B", " in this setting").removeprefix("not the same: "),
            first=None if level is None else level.first,
        )
    is_unfinished = any(side.stopped.startswith(SPENT) for side in (found.side_a, found.side_b))
    return Proof(same_data="unproven", says=says.removeprefix("inconclusive: "), is_unfinished=is_unfinished)


def _without_later_order(found: Equivalence) -> Equivalence | None:
    """The comparison without the order, if that is the same in the first epoch and differs later; None: it is not so."""
    order = next(one for one in found.levels if one.level == "E1")
    if order.verdict != "differs" or order.first is None or not order.first.epoch:
        return None
    left = (LevelResult(level="E1", verdict="not asked") if one is order else one for one in found.levels)
    return dataclasses.replace(found, levels=tuple(left))
