"""What each stage of the loader costs, what the utilisation law makes of it, and whether leaving a stage out agrees.

Stages inside a worker follow each other, so that a worker is one server of their sum: n workers deliver n / sum. What the
loop's own process does for each batch (handing over, copying to a device) is a server of its own beside them; without
workers all is one server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from headrace.doctor.measuring.arms import log_ratio, rate_of, ratio
from headrace.doctor.measuring.model import KnockOut, RoundRun, StageRow
from headrace.doctor.statistics.utilisation import Ceiling, Demand, ceiling
from headrace.doctor.timing.timed import Stage, StageUse

__all__ = [
    "DATASET",
    "LOOP",
    "OF_LOOP",
    "WORKERS",
    "ceiling_of",
    "explained",
    "find_knock_outs",
    "find_stages",
    "predicted_gains",
    "saved",
]

WORKERS, LOOP = "workers", "loop"
"""The two servers of the model: all workers together, and the loop's own process."""
OF_LOOP: frozenset[Stage] = frozenset({"handover", "transfer"})
DATASET: frozenset[Stage] = frozenset({"read", "decode", "transform", "sample"})
COMPUTES = 0.8
"""Part of a stage's time from which it is called bound by the processor."""
WAITS, SLEEPS = 0.5, 0.1
LEAST_SAVED = 0.1
"""A stage whose removal saves less than a tenth of the loader's time limits nothing."""
NEAR = 0.7
"""The model may rank another stage first by this much and still agrees: two stages of like size change places by chance."""


def saved(gain: float) -> float:
    """The part of the loader's time that a gain stands for: twice as fast saves half."""
    return 1.0 if math.isinf(gain) else gain / (1 + gain) if gain > -1 else 0.0


def find_knock_outs(runs: Sequence[RoundRun], predicted: Mapping[Stage, float]) -> tuple[KnockOut, ...]:
    """What the loader alone gained in the rounds without a stage."""
    found = []
    for arm in dict.fromkeys(run.arm for run in runs if run.arm.startswith("L without ")):
        effect = log_ratio(runs, arm, "L")
        own = [run for run in runs if run.arm == arm and rate_of(run) is not None and run.timed is not None]
        if effect is None or not own or own[0].timed is None:
            continue
        (stage,) = own[0].timed.without
        found.append(
            KnockOut(
                stage=stage,
                gain=ratio(effect, minus=1.0),
                predicted=predicted.get(stage),
                ids=tuple(run.id for run in own),
            )
        )
    return tuple(found)


def ceiling_of(uses: Sequence[StageUse], *, num_workers: int, cores: float) -> Ceiling | None:
    """The rate that workers, the loop's process and cores allow; None: nothing was accounted."""
    demands = _demands(uses, num_workers)
    return ceiling(demands, num_cores=cores) if demands else None


def predicted_gains(uses: Sequence[StageUse], *, num_workers: int, cores: float) -> dict[Stage, float]:
    """How much the ceiling would rise without each stage, as a share."""
    whole = ceiling_of(uses, num_workers=num_workers, cores=cores)
    if whole is None or math.isinf(whole.rate_per_s):
        return {}
    left_out: dict[Stage, set[Stage]] = {use.stage: {use.stage} for use in uses}
    if left_out.keys() & DATASET:
        left_out["sample"] = set(DATASET)  # an experiment without the sample is one without all that makes it
    gains: dict[Stage, float] = {}
    for stage, gone in left_out.items():
        rest = [one for one in uses if one.stage not in gone]
        without = ceiling_of(rest, num_workers=num_workers, cores=cores)
        gains[stage] = math.inf if without is None else without.rate_per_s / whole.rate_per_s - 1
    return gains


def _demands(uses: Sequence[StageUse], num_workers: int) -> list[Demand]:
    demands = []
    for name in (WORKERS, LOOP):
        own = [use for use in uses if use.num_samples and (name == LOOP) == (num_workers > 0 and use.stage in OF_LOOP)]
        if own:
            demands.append(
                Demand(
                    stage=name,
                    wall_s=sum(use.wall_s / use.num_samples for use in own),
                    cpu_s=sum(use.cpu_s / use.num_samples for use in own),
                    num_servers=max(1, num_workers) if name == WORKERS else 1,
                )
            )
    return demands


def find_stages(
    uses: Sequence[StageUse], knock_outs: Sequence[KnockOut], *, limit: Stage | None, is_noisy: bool = False
) -> tuple[StageRow, ...]:
    """One row per stage, in the order of the flow; of a stage that was only knocked out, the time is not known and left out.

    Args:
        uses: What was accounted.
        knock_outs: What was left out, for the gains.
        limit: The stage that limits; None: none does.
        is_noisy: Others keep cores busy: who does not compute may be waiting for a core, where the kernel does not tell.
    """
    gains = {one.stage: one.gain for one in knock_outs}
    total_s = sum(use.wall_s / use.num_samples for use in uses if use.num_samples)
    return tuple(
        StageRow(
            stage=use.stage,
            wall_ms=1e3 * use.wall_s / use.num_samples,
            cpu_ms=1e3 * use.cpu_s / use.num_samples,
            share=use.wall_s / use.num_samples / total_s if total_s else 0.0,
            kind=_kind(use, is_noisy=is_noisy),
            gain=gains.get(use.stage),
            is_limit=use.stage == limit,
        )
        for use in uses
        if use.num_samples
    )


def _kind(use: StageUse, *, is_noisy: bool) -> Literal["cpu", "disk", "waiting", "copy", "unknown"]:
    if use.stage in {"handover", "transfer"}:
        return "copy"
    if use.wall_s <= 0:
        return "unknown"
    # Who waits for a core would compute if there was one.
    computed = (use.cpu_s if use.awake_s is None else use.awake_s) / use.wall_s
    if computed >= COMPUTES:
        return "cpu"
    if computed < (SLEEPS if is_noisy and use.awake_s is None else WAITS):
        return "disk" if use.stage == "read" and use.num_bytes else "waiting"
    return "unknown"


def explained(
    knock_outs: Sequence[KnockOut], predicted: Mapping[Stage, float]
) -> list[tuple[Stage, Literal["experiment", "accounted"]]]:
    """The stages that limit the loader alone, the most important first; empty: nothing does, or it is unexplained.

    Model and experiment must agree: the stage whose removal saves most is the one of which the model says so, or nearly.
    Where only one of them is there, it is taken, and the basis says which; rounds of an experiment that vary so much that
    it could have saved nothing are as good as none, if they do not speak against the model. Further stages follow that agree
    as well.
    """
    measured = {one.stage: saved(one.gain.value) for one in knock_outs}
    modelled = {stage: saved(gain) for stage, gain in predicted.items()}
    if not measured:
        own = modelled.keys() - ({"sample"} if modelled.keys() & (DATASET - {"sample"}) else set())
        ranked = sorted(own, key=modelled.__getitem__, reverse=True)
        return [(stage, "accounted") for stage in ranked if modelled[stage] >= 0.5]
    sure = {one.stage for one in knock_outs if one.gain.interval.low > 0 or math.isinf(one.gain.interval.low)}
    ranked = sorted(measured, key=measured.__getitem__, reverse=True)
    common = {stage: share for stage, share in modelled.items() if stage in measured}
    greatest = max(common.values(), default=0.0)
    found: list[tuple[Stage, Literal["experiment", "accounted"]]] = []
    for place, stage in enumerate(ranked):
        if measured[stage] < (LEAST_SAVED if place == 0 else 2 * LEAST_SAVED):
            break
        if stage not in sure:
            if place == 0 and modelled.get(stage, 0.0) >= max(0.5, greatest) and _admits(knock_outs, stage, predicted):
                found.append((stage, "accounted"))
            break
        agrees = not common or common.get(stage, 0.0) >= (NEAR * greatest if place == 0 else LEAST_SAVED)
        if not agrees:
            break
        found.append((stage, "experiment"))
    return found


def _admits(knock_outs: Sequence[KnockOut], stage: Stage, predicted: Mapping[Stage, float]) -> bool:
    """True if what an experiment showed may be what the model says."""
    found = next(one.gain.interval for one in knock_outs if one.stage == stage)
    return found.low <= predicted[stage] <= found.high
