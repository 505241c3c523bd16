"""Does the loader deliver enough on average, so that no stage of it can be what limits the loop?

Alone, it has all cores; beside the step it may be slower. So its supply is brought down by as much as its batches take longer
in the loop than alone.
"""

from __future__ import annotations

import math
import statistics

from headrace.doctor.measuring.causes.gains import rounds_of
from headrace.doctor.measuring.model import Estimate, Measurement
from headrace.doctor.statistics.interval import Interval

__all__ = ["CLEARLY", "supplies_enough", "supply_beside_the_step"]

CLEARLY = 1.05
"""Times the need, which the whole interval of the supply has to exceed."""
COMFORT = 1.25
"""Times the need, which it has to exceed where there were too few rounds for an interval."""


def supply_beside_the_step(m: Measurement) -> Estimate | None:
    """Supply over need, as far as it is left while the step runs; None: there are no workers, or it is not known."""
    d = m.decomposition
    if d is None or d.supply_ratio is None or not m.num_workers:
        return None
    slower = _slower_beside(m)
    found = d.supply_ratio
    return Estimate(
        value=found.value / slower,
        interval=Interval(found.interval.low / slower, found.interval.high / slower),
    )


def supplies_enough(m: Measurement) -> bool:
    """True if workers clearly deliver more than the step needs: then only how it is spread can make the loop wait."""
    found = supply_beside_the_step(m)
    if found is None:
        return False
    if math.isfinite(found.interval.low) and found.interval.low > 0:
        return found.interval.low > CLEARLY
    return found.value > COMFORT


def _slower_beside(m: Measurement) -> float:
    """Times that a batch takes longer in its worker while the step runs; 1 if it does not, or that is not known."""
    middle = []
    for arm in ("I accounted", "L accounted"):
        took = [one.made_s - one.began_s for timed in rounds_of(m, arm) for one in timed.batches_made]
        if not took:
            return 1.0
        middle.append(statistics.fmean(took))
    return max(1.0, middle[0] / max(middle[1], 1e-12))
