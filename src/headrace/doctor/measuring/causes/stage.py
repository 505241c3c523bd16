"""The stage of the loader that limits it: named only where model and experiment agree."""

from __future__ import annotations

import math
from typing import cast

from headrace.doctor.measuring.causes.costs import SATURATED, busy_share
from headrace.doctor.measuring.causes.enough import supplies_enough, supply_beside_the_step
from headrace.doctor.measuring.causes.gains import evidence, loop_gain, rounds_of
from headrace.doctor.measuring.causes.remedies import remedies_for
from headrace.doctor.measuring.model import Cause, CauseFound, Estimate, Measurement, StageRow
from headrace.doctor.measuring.stages import DATASET, OF_LOOP, explained
from headrace.doctor.measuring.wording import gain, percent, seconds_text
from headrace.doctor.timing.timed import Stage

__all__ = ["costly_handover", "stage_causes", "unexplained"]

MOST_OF_SAMPLE = 0.6
"""Part of the data set's time from which one stage in it is named, where only all of it could be left out."""
LEAST_PART = 0.03
"""Part of a step that handing over must take to be called its limit."""
WORDS: dict[Stage, str] = {
    "read": "Reading",
    "decode": "Decoding",
    "transform": "The transform",
    "sample": "Preparing the sample in the data set",
    "collate": "Collation",
    "handover": "Handing batches from the workers to the loop",
    "transfer": "Copying to the device",
}
HOW = {
    "cpu": "computing",
    "disk": "waiting for the disk or the network",
    "waiting": "waiting for something else than a core",
    "copy": "copying",
    "unknown": "",
}


def stage_causes(m: Measurement) -> list[CauseFound]:
    """One cause per stage that limits the loader, the most important first."""
    rows = {row.stage: row for row in m.stages}
    outs = {one.stage: one for one in m.knock_outs}
    predicted: dict[Stage, float] = {row.stage: row.share / max(1 - row.share, 1e-9) for row in m.stages}
    if m.knock_outs:
        predicted = {stage: one.predicted for stage, one in outs.items() if one.predicted is not None}
    found = []
    for left_out, basis in explained(m.knock_outs, predicted):
        loader_gain = outs[left_out].gain if basis == "experiment" else Estimate(value=predicted[left_out])
        stage = _inside(m) if left_out == "sample" else left_out
        found.append(
            CauseFound(
                cause=cast("Cause", stage),
                text=_text(m, stage, rows.get(stage), loader_gain, left_out=left_out, is_proven=basis == "experiment"),
                gain=loop_gain(m, loader_gain, in_loop=stage in OF_LOOP),
                basis=basis,
                evidence=evidence(m, "L", f"L without {left_out}", "L accounted"),
                remedy=remedies_for(stage, m, rows.get(stage), cores_are_busy=_cores_are_busy(m)),
            )
        )
    return found


def _inside(m: Measurement) -> Stage:
    """The stage inside the data set that takes most of its time; `sample` if none does."""
    rows = [row for row in m.stages if row.stage in DATASET]
    total_ms = sum(row.wall_ms for row in rows)
    first = max(rows, key=lambda row: row.wall_ms, default=None)
    return first.stage if first is not None and first.wall_ms >= MOST_OF_SAMPLE * total_ms else "sample"


def costly_handover(m: Measurement) -> CauseFound | None:
    """Batches are ready before they are asked for, and the loop waits all the same: for taking them over."""
    waiting, d = m.waiting, m.decomposition
    if waiting is None or d is None or not m.num_workers or waiting.ready_ahead_s is None:
        return None
    typical_s = waiting.quantiles[0].wait_s
    # Ready for longer than the wait itself: it was there when it was asked for.
    was_there = waiting.ready_ahead_s > 2 * typical_s
    if not was_there or typical_s < LEAST_PART * d.total_s.value or typical_s < 0.5 * d.waiting_s.value:
        return None
    won = loop_gain(m, Estimate(value=math.inf), in_loop=True)
    if won.value < LEAST_PART or not _hands_over_itself(m):
        return None
    return CauseFound(
        cause="handover",
        text=f"A batch is ready {seconds_text(waiting.ready_ahead_s)} before it is asked for, and taking it over takes "
        f"{seconds_text(typical_s)} of every step all the same: {WORDS['handover'].lower()} is the limit.",
        gain=won,
        basis="accounted",
        evidence=evidence(m, "I", "I accounted"),
        remedy=remedies_for("handover", m, None, cores_are_busy=False),
    )


def _hands_over_itself(m: Measurement) -> bool:
    """False if on a busy machine handing over hardly computes: then the loop waited for a core."""
    row = next((row for row in m.stages if row.stage == "handover"), None)
    d = m.decomposition
    if m.preflight.noise in {"quiet", "unknown"} or row is None or row.cpu_ms is None or d is None:
        return True
    return row.cpu_ms / 1e3 * (m.batch_size or 1) >= LEAST_PART * d.total_s.value


def _text(
    m: Measurement, stage: Stage, row: StageRow | None, loader_gain: Estimate, *, left_out: Stage, is_proven: bool
) -> str:
    """What it takes, of what, and what the loader alone is without it."""
    told = WORDS[stage]
    if row is not None:
        who = "the workers' time" if m.num_workers else "the loader's time"
        how = f", {HOW[row.kind]}" if HOW[row.kind] else ""
        told += f" takes {row.wall_ms:.3g} ms per sample, {percent(row.share)} of {who}{how}"
    else:
        told += " limits the loader"
    what = "it" if left_out == stage else "all that the data set does"
    if is_proven:
        told += f"; without {what} the loader alone delivers {gain(loader_gain)}"
        told += " more" if loader_gain.value < 4 else " as much"
    elif any(one.stage == left_out for one in m.knock_outs):
        told += f"; rounds without {what} vary too much to prove it"
    else:
        told += "; it could not be left out to prove it"
    if _cores_are_busy(m):
        told += f". All {m.preflight.machine.usable_cores} cores are busy"
    return f"{told}."


def _cores_are_busy(m: Measurement) -> bool:
    cores = m.preflight.machine.usable_cores
    shares = [busy_share(timed, cores) for timed in rounds_of(m, "I" if m.decomposition else "L")]
    return bool(shares) and sorted(shares)[len(shares) // 2] >= SATURATED


def unexplained(m: Measurement) -> CauseFound:
    """The loader limits, and no stage explains it."""
    best = max(m.knock_outs, key=lambda one: one.gain.value, default=None)
    supply = supply_beside_the_step(m)
    if supplies_enough(m) and supply is not None:
        told = (
            f"The loader delivers x{supply.value:.2f} of the need on average, and the loop waits all the same; neither single "
            "slow samples or workers nor uneven steps explain it."
        )
    elif best is None:
        told = "The loader is too slow, and none of its stages could be left out or timed."
    else:
        told = (
            f"No stage explains it: leaving out {best.stage} gains most ({gain(best.gain)}), and that is not what its time "
            "would make one expect. Something that is no stage costs time: a lock, memory bandwidth, another process."
        )
    return CauseFound(
        cause="unexplained",
        text=told,
        gain=None if m.decomposition is None else m.decomposition.headroom,
        basis="experiment" if best is not None else "observed",
        evidence=evidence(m, "L", "L accounted"),
        remedy=(
            *(["prefetch_factor higher: more prepared ahead evens out what is uneven"] if supplies_enough(m) else []),
            "`headrace tune` tries settings instead of explaining",
            "--trace FILE shows every batch and worker on a time line",
        ),
    )
