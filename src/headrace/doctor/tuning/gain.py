"""What a change is worth: an interval for the gain that will be found when it is measured again."""

from __future__ import annotations

import math

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.noise import NoiseFloor
from headrace.doctor.statistics.pairs import Pairs, bootstrap_effect
from headrace.doctor.tuning.model import Gain

__all__ = ["expected_gain"]


def expected_gain(both: Pairs, floor: NoiseFloor, *, seed: int = 0) -> Gain:
    """Returns the gain of a setting over the present one.

    Only rounds of the confirmation go in: the best of many trials was partly lucky in the trials that it was chosen by, and
    would promise too much. Whoever measures the gain again has noise of his own, about as much as two equal settings showed
    here; the half widths of both are added as squares, as those of independent errors are.

    Args:
        both: Log ratios of the setting to the present one, by block.
        floor: What the control showed.
        seed: As in `bootstrap_effect`.
    """
    effect = bootstrap_effect(both, seed=seed)
    half_width = math.hypot((effect.interval_95.high - effect.interval_95.low) / 2, floor.bound_log)
    ratio = Interval.around(effect.log, half_width).exp()
    return Gain(value=effect.ratio - 1, interval=Interval(ratio.low - 1, ratio.high - 1))
