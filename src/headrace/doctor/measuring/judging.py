"""Is the loop limited by its data? Two witnesses are asked: step times with and without the loader, and the waits themselves.

The waits are seen directly, in every step, and hardly know noise. Step times know everything that a loader does to a loop,
but also the noise of the machine, and that one kept batch may not be like the others. So nobody is called limited unless
something that data cost was seen itself, and nobody is called healthy while an interval reaches what matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from headrace.doctor.measuring.decomposition import noise_of
from headrace.doctor.measuring.model import CauseFound, Measurement

__all__ = ["MATTERS", "WAITS", "judge"]

MATTERS = 0.05
"""A share of the loop's time that people act on."""
WAITS = 0.03
"""Share of waiting from which its cause is asked for."""
FEELS = 0.02
"""Below 2 % nothing is changed for it."""
STARVED = {"quiet": MATTERS, "unknown": MATTERS, "noisy": 0.1, "loud": 0.2}
"""Share of waiting from which a loop is called limited, by how busy the machine was beforehand: whoever shares its cores with
others waits for data now and then, and that is not the loader's fault."""
MOST = 0.5
"""Share of waiting that no busy machine explains by itself."""
STILL_NEAR = 0.12
"""How far the interval of the step times may reach where the loop is seen to wait for nothing."""


def judge(m: Measurement, beside: Sequence[CauseFound]) -> Literal["healthy", "limited", "inconclusive"]:
    """Decides.

    Args:
        m: A measurement with a training step.
        beside: Costs that are not waiting and were proven: interference, transfer, epoch starts.
    """
    d, waiting = m.decomposition, m.waiting
    if waiting is None:
        return "inconclusive"
    waits, matters = waiting.share, STARVED[m.preflight.noise]
    starves = waits.interval.low > matters / (1 + MATTERS)
    is_quiet = m.preflight.noise in {"quiet", "unknown"}
    if d is None:  # too few rounds to compare step times: only what is seen directly can decide
        has_device = any(run.timed is not None and run.timed.device is not None for run in m.runs)
        is_plain = waits.interval.low > (MATTERS if is_quiet else MOST)
        return "limited" if starves and is_plain and not has_device else "inconclusive"
    headroom = d.headroom
    noise = noise_of(m.runs, "I")
    bound = math.inf if noise is None else noise[1]
    is_slower = headroom.interval.low > FEELS and headroom.value >= matters and headroom.value > min(bound, 1.0)
    if d.transfer_s is not None or not is_quiet:
        # With a device, waits of the host may be hidden behind its queue; on a busy machine, who waits for data may be waiting
        # for a core, and would wait for it in the step as well. Then the step times have to show the waits, too.
        starves = starves and headroom.value >= waits.value / (1 - min(waits.value, 0.99)) / 2
        starves = starves and (is_quiet or headroom.interval.low > FEELS or waits.interval.low > MOST)
    if starves or beside or (is_slower and waits.value >= WAITS):
        return "limited"
    waits_for_nothing = waits.interval.high < FEELS
    limit = max(MATTERS, FEELS + min(bound, MATTERS))
    if headroom.interval.high < limit and waits.value < MATTERS:
        return "healthy"
    if waits_for_nothing and headroom.interval.low <= FEELS and headroom.interval.high < STILL_NEAR:
        return "healthy"
    if waits_for_nothing and is_slower and _has_no_interference(m):
        return "healthy"  # the steps are longer with fresh batches than with a kept one, and no loader changes that
    return "inconclusive"


def _has_no_interference(m: Measurement) -> bool:
    d = m.decomposition
    if d is None or not m.num_workers:
        return True
    return d.interference_s is not None and d.interference_s.interval.high < MATTERS * d.compute_s.value
