"""Are the data with workers those without? Asked of the room that compares, for as long as the plain table can wait."""

from __future__ import annotations

from typing import Any

from headrace.doctor.measuring.looking import TargetFacts
from headrace.doctor.measuring.plain import Checked
from headrace.doctor.sameness.compare import Options, compare
from headrace.errors import HeadraceError

__all__ = ["check_workers"]

MOST_SAMPLES, MOST_BATCHES = 512, 16


def check_workers(target: Any, number: int, *, seconds: float, facts: TargetFacts, seed: int) -> Checked:
    """Compares ids, order, targets and fixed fields of one epoch's beginning.

    Args:
        target: As it is measured.
        number: Of workers, against none.
        seconds: For it.
        facts: Of the target.
        seed: Of both.
    """
    samples = min(MOST_SAMPLES, MOST_BATCHES * (facts.batch_size or 16))
    options = Options(
        levels=("E0", "E1", "E2", "E3"), seed=seed, num_epochs=1, max_samples=samples, budget_s=max(1.0, seconds)
    )
    try:
        found = compare(target, target, options, workers=(0, number))
    except HeadraceError as error:
        return Checked(text=f"not compared: {error.what}", is_same=None)
    checked = [one.level for one in found.levels if one.verdict == "proven"]
    names = {"E0": "ids", "E1": "order", "E2": "targets", "E3": "shapes and values of what is not random"}
    told = ", ".join(names[level] for level in checked if level in names)
    if found.verdict == "same":
        return Checked(text=f"{told}: the first {samples:,} samples", is_same=True)
    if found.verdict == "different":
        first = found.first_level
        return Checked(text=f"{names.get(first.level, first.level) if first else 'data'} differ", is_same=False)
    return Checked(text=f"{told or 'nothing'} compared in the time there was", is_same=None)
