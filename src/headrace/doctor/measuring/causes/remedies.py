"""What to do about a stage that limits: the simplest first, and only what can help in this setting."""

from __future__ import annotations

import math

from headrace.doctor.measuring.model import Measurement, StageRow
from headrace.doctor.timing.timed import Stage

__all__ = ["remedies_for"]

MOST_WAITING = 4
"""Workers per core that are advised at most, where they wait and do not compute."""
LESS_WORK: dict[Stage, tuple[str, ...]] = {
    "read": (
        "read from a local disk, or keep what is read: hr.folder(...).cache(...), a copy in memory",
        "fewer, larger requests: many samples in one file, read in order",
    ),
    "decode": (
        "smaller files: store images at the size that is used, decode at reduced size",
        "decode once: keep decoded samples in a cache",
        "a faster decoder",
    ),
    "transform": (
        "do what is not random once, before training",
        "work on whole arrays instead of Python loops",
        "augment whole batches on the device",
    ),
    "sample": (
        "time the parts of __getitem__: what is not random can be done once, before training",
        "work on whole arrays instead of Python loops",
    ),
    "collate": (
        "return arrays of one shape from the data set, and join them once: torch.stack, numpy.stack",
        "fetch a whole batch at once: __getitems__",
        "hr.DataLoader joins samples straight into shared memory",
    ),
    "handover": (
        "few large tensors instead of many small objects: join fields, drop what the loop does not use",
        "smaller types: uint8 images, converted on the device",
        "hr.DataLoader hands over one message per batch",
    ),
    "transfer": ("pin_memory=True and batch.to(device, non_blocking=True)", "smaller types: convert on the device"),
}


def remedies_for(stage: Stage, m: Measurement, row: StageRow | None, *, cores_are_busy: bool) -> tuple[str, ...]:
    """Workers first where they help: the stage is inside them, and a core is free or none is needed."""
    told = []
    if stage not in {"handover", "transfer"}:
        told += _more_workers(m, row, cores_are_busy=cores_are_busy)
    if stage == "handover" and m.num_workers:
        told.append("num_workers=0, if the step leaves the time: nothing is handed over then")
    return (*told, *LESS_WORK[stage])


def _more_workers(m: Measurement, row: StageRow | None, *, cores_are_busy: bool) -> list[str]:
    cores = m.preflight.machine.usable_cores
    waits = row is not None and row.kind in {"disk", "waiting"}
    if not waits and (cores_are_busy or m.num_workers >= cores):
        return (
            [f"more workers cannot help: {cores} cores are there, and all of them are needed"] if m.num_workers else []
        )
    needed = _needed_workers(m)
    # One core is the step's; who only waits needs none, but each worker takes memory.
    limit = MOST_WAITING * cores if waits else max(1, cores - 1)
    most = min(needed, limit) if needed else None
    if not m.num_workers:
        return [f"num_workers={most or 2}: the loader then works beside the step; `headrace tune` tries it"]
    if most is None or most <= m.num_workers:
        most = m.num_workers + 1 if not waits else min(2 * m.num_workers, max(limit, m.num_workers + 1))
    kind = ", which wait more than they compute" if waits else ""
    return [f"num_workers={most} instead of {m.num_workers}{kind}; `headrace tune` tries it"]


def _needed_workers(m: Measurement) -> int | None:
    """Workers that deliver what the step takes, by the accounted time of a sample; None: not known."""
    inside_ms = sum(row.wall_ms for row in m.stages if row.stage not in {"handover", "transfer"})
    if not m.need_per_s or not inside_ms:
        return None
    return max(1, math.ceil(m.need_per_s.value * inside_ms / 1e3))
