"""From everything that was measured to the verdict: one sentence, the causes, and what would settle it if it is open."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.doctor.measuring.causes.costs import (
    interference,
    lock,
    memory,
    needless_workers,
    oversubscription,
    transfer,
)
from headrace.doctor.measuring.causes.enough import supplies_enough
from headrace.doctor.measuring.causes.shape import burst, epoch_start, slow_worker, tail
from headrace.doctor.measuring.causes.stage import costly_handover, stage_causes, unexplained
from headrace.doctor.measuring.judging import MATTERS, WAITS, judge, misses_interference, most_lost
from headrace.doctor.measuring.model import Cause, CauseFound, Conclusion, Measurement
from headrace.doctor.measuring.stages import OF_LOOP
from headrace.doctor.measuring.wording import percent, rate, seconds_text, share

__all__ = ["conclude"]

ENOUGH = 0.8
"""Part of the headroom that a cause explains, from which no further cause of waiting is looked for."""
FAR = 10.0
"""A headroom of x11 as the upper end of an interval that reaches down to nothing: only that it is not known."""
LIMITS: dict[Cause, str] = {
    "read": "reading is the limit",
    "decode": "decoding is the limit",
    "transform": "the transform is the limit",
    "sample": "preparing samples in the data set is the limit",
    "collate": "collation is the limit",
    "handover": "handing batches over from the workers is the limit",
    "transfer": "copying to the device is the limit",
    "slow worker": "one worker is much slower than the others",
    "tail": "few slow samples hold up all others",
    "epoch start": "each epoch begins with standing still",
    "oversubscription": "more threads want to compute than there are cores",
    "burst": "too little is prepared ahead for a row of short steps",
    "memory": "batches prepared ahead take too much memory",
    "needless workers": "workers cost more than they bring",
    "interference": "the loader slows the step down",
    "lock": "threads take turns at the interpreter",
    "unexplained": "why is not explained",
}


def conclude(m: Measurement) -> Conclusion:
    """Draws the conclusion; `m.conclusion` is not looked at."""
    if m.consumer is None:
        return _supply(m)
    beside = [cause for cause in (interference(m), transfer(m), epoch_start(m)) if cause is not None]
    verdict = judge(m, beside)
    tight = memory(m)
    if verdict == "limited":
        causes = _by_weight(m, beside)
        causes += [tight] if tight is not None else []
        return Conclusion(verdict="limited", sentence=_limited(m, causes), causes=tuple(causes))
    if tight is not None:
        sentence = f"The loop is in danger: {LIMITS['memory']}."
        return Conclusion(verdict="limited", sentence=sentence, causes=(tight,))
    if verdict == "healthy":
        needless = needless_workers(m)
        found = () if needless is None else (needless,)
        return Conclusion(verdict="healthy", sentence=_healthy(m), causes=found)
    return Conclusion(verdict="inconclusive", sentence=_open(m), causes=(), settling=_settling(m))


def _supply(m: Measurement) -> Conclusion:
    """Without a training step: what the loader supplies, and what limits it."""
    causes = _of_loader(m)
    alone = {arm.name: arm.rounds for arm in m.arms if arm.name in {"L", "L accounted", "L pilot"}}
    delivered = alone.get("L") or alone.get("L accounted") or alone.get("L pilot")
    if delivered is None:
        return Conclusion(
            verdict="inconclusive",
            sentence="The loader alone did not run long enough to tell its rate.",
            causes=(),
            settling="a larger --budget, or more data",
        )
    told = f"The loader alone delivers {rate(delivered.mean_per_s, delivered.interval_per_s)}"
    told += f"; {LIMITS[causes[0].cause]}." if causes else "."
    return Conclusion(
        verdict="supply",
        sentence=told,
        causes=tuple(causes),
        settling="whether that is enough: --train train.py:train_step, or --step-ms N",
    )


def _by_weight(m: Measurement, beside: Sequence[CauseFound]) -> list[CauseFound]:
    """Causes of waiting, and what costs beside it; what costs most time comes first."""
    d, waiting = m.decomposition, m.waiting
    groups: list[tuple[float, list[CauseFound]]] = []
    if waiting is not None and waiting.share.value >= WAITS:
        # The waits themselves, where a noisy step time would deny them.
        waited_s = 1.0 if d is None else max(d.waiting_s.value, waiting.share.value * d.total_s.value)
        groups.append((waited_s, _of_loader(m)))
    for cause in beside:
        total_s = 0.0 if d is None else d.total_s.value if cause.cause == "epoch start" else d.compute_s.value
        groups.append(((cause.gain.value if cause.gain else 0.0) * total_s, [cause]))
    return [cause for _, causes in sorted(groups, key=lambda group: -group[0]) for cause in causes]


def _of_loader(m: Measurement) -> list[CauseFound]:
    """Why the loader is too slow; never empty where there is a step that waits."""
    shapes = [cause for cause in (slow_worker(m), tail(m)) if cause is not None]
    if shapes and _suffices(m, shapes[0]):
        return shapes
    taken = costly_handover(m)
    if taken is not None:
        needless = needless_workers(m)
        return [*shapes, *([needless] if needless is not None and needless.gain is not None else []), taken]
    short = None if shapes else burst(m)
    if short is not None:
        return [short]
    costs = [cause for cause in (lock(m), oversubscription(m)) if cause is not None]
    if not costs and not shapes:
        needless = needless_workers(m)
        costs = [needless] if needless is not None and needless.gain is not None else []
    stages = stage_causes(m)
    if supplies_enough(m):  # what workers do is fast enough, so only what the loop's own process does can limit
        stages = [cause for cause in stages if cause.cause in OF_LOOP]
    found = [*shapes, *costs, *stages]
    return found or ([unexplained(m)] if m.consumer is not None or m.knock_outs else [])


def _suffices(m: Measurement, cause: CauseFound) -> bool:
    """True if mending it would win nearly all that there is to win."""
    d = m.decomposition
    if d is None or cause.gain is None:
        return False
    return cause.gain.value >= ENOUGH * d.headroom.value


def _limited(m: Measurement, causes: Sequence[CauseFound]) -> str:
    """What is lost, and what limits."""
    first = causes[0] if causes else unexplained(m)
    d, waiting = m.decomposition, m.waiting
    if first.cause == "interference" and d is not None and d.interference_s is not None:
        return f"The loader makes the step {percent(d.interference_s.value / d.compute_s.value)} longer, and is not waited for."
    if first.cause == "epoch start":
        return first.text
    if first.cause == "transfer":
        return first.text
    told = "" if waiting is None else f"The loop waits for data {share(waiting.share)} of the time"
    return f"{told}: {LIMITS[first.cause]}."


def _healthy(m: Measurement) -> str:
    d, waiting = m.decomposition, m.waiting
    if waiting is None:
        return "Nothing to fix."
    by_waits = waiting.share.interval.high / (1 - min(waiting.share.interval.high, 0.99))
    lost = most_lost(m)
    if lost is not None and lost < MATTERS:
        by_waits = max(by_waits, lost / (1 - lost))
    by_steps = by_waits if d is None else max(0.0, d.headroom.interval.high)
    most = by_waits if by_steps >= MATTERS and by_waits < by_steps else max(by_steps, by_waits)
    told = f"Nothing to fix: work on data could win at most {percent(max(most, 0.001))}."
    if d is None:
        return told
    if d.headroom.interval.low > 0.02 and by_waits < d.headroom.interval.low:
        told += " Steps take longer with fresh batches than with one that is kept, which no loader changes."
    return told


def _open(m: Measurement) -> str:
    d, waiting = m.decomposition, m.waiting
    if d is None or waiting is None:
        return "It cannot be told whether the loop waits for data: too few rounds ran."
    if d.headroom.interval.high > FAR:  # an interval that wide says nothing that its numbers would add to
        return f"It cannot be told yet: work on data could win about {percent(d.headroom.value)}, from too few rounds."
    if misses_interference(m):
        return (
            f"The loop waits for nothing ({share(waiting.share)} of the time), but its steps are {share(d.headroom)} longer than "
            "on a batch that is kept: because workers work beside them, or because fresh batches take longer, is open."
        )
    return (
        f"It cannot be told: work on data could win {share(d.headroom)}, which reaches from nothing to what matters; "
        f"the loop waits {share(waiting.share)} of the time."
    )


def _settling(m: Measurement) -> str:
    """Why it is open, and what would settle it."""
    d = m.decomposition
    if d is None:
        return f"a larger budget, for example --budget {seconds_text(3 * m.budget_s).replace(' ', '')}"
    noise = noise_text(m)
    if misses_interference(m):
        noise = f"rounds of N, in which workers work beside a step on a kept batch, did not fit; {noise}"
    width = d.headroom.interval.high - d.headroom.interval.low
    # Intervals shrink with the root of the number of rounds; half of what matters is what they have to come down to.
    times = min(10.0, max(2.0, (width / 0.05) ** 2)) if math.isfinite(width) else 2.0
    budget = math.ceil(times * m.budget_s / 30) * 30
    return f"{noise}; a quieter machine, or about --budget {budget:.0f}s"


def noise_text(m: Measurement) -> str:
    """How noisy it was, in words."""
    pressure = m.preflight.machine.cpu_pressure
    told = []
    if m.noise is not None and math.isfinite(m.noise.interval.high):
        reach = max(m.noise.interval.high - 1, 1 - m.noise.interval.low)
        told.append(f"two equal settings differed by up to {percent(reach)}")
    if pressure is not None and pressure > 10:
        told.append(f"something waited for a core {pressure:.0f} % of the time before it began")
    return ", and ".join(told) or "too few rounds fitted into the budget"
