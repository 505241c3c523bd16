"""What one accelerator's loop needs of the machine at the full speed of its training step, and 2, 4, 8 of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.doctor.measuring.model import Resources
from headrace.doctor.timing.timed import StageUse, Timed

__all__ = ["resources_for"]

NUMBERS = (1, 2, 4, 8)


def resources_for(
    need_per_s: float,
    *,
    timed: Timed,
    uses: Sequence[StageUse],
    memory_bytes: int | None,
    shm_bytes: int | None,
) -> tuple[Resources, ...]:
    """Multiplies what was measured; nothing that several accelerators would share is counted as shared.

    Args:
        need_per_s: Samples per second that one training step takes, margin included.
        timed: A round of the loader alone: CPU seconds and bytes per sample.
        uses: Its accounted stages; empty: not known.
        memory_bytes: The loop's high-water mark; None: not measured.
        shm_bytes: That of shared memory.
    """
    num = max(1, timed.amounts.num_samples)
    cores = need_per_s * (timed.consumer_cpu_s + timed.workers_cpu_s) / num
    inside = [use for use in uses if use.stage not in {"handover", "transfer"} and use.num_samples]
    wall_s = sum(use.wall_s / use.num_samples for use in inside)
    requests = [use.num_requests / use.num_samples for use in inside if use.num_requests is not None]
    storage = None if timed.logical_bytes is None else need_per_s * timed.logical_bytes / num
    return tuple(
        Resources(
            num_accelerators=number,
            samples_per_s=number * need_per_s,
            cores=number * cores,
            workers=number * max(1, math.ceil(need_per_s * wall_s)) if inside else None,
            memory_bytes=None if memory_bytes is None else number * memory_bytes,
            shm_bytes=None if shm_bytes is None else number * shm_bytes,
            storage_bytes_per_s=None if storage is None else number * storage,
            requests_per_s=number * need_per_s * sum(requests) if requests else None,
        )
        for number in NUMBERS
    )
