"""What fits into a budget: windows, rounds, blocks, from what the first rounds took. Pure arithmetic.

look ─ accounted rounds (they are the pilots) ─ plain table ─ blocks of the loop ─ knock-outs ─ memory ─ more blocks, if open
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headrace.doctor.timing.timed import Stage, StageUse

__all__ = ["Pilot", "Plan", "knock_outs_that_fit", "make_plan"]

SHORTEST_S, LONGEST_S = 0.4, 1.5
"""Seconds of a window. Shorter ones end before processes have met; longer ones leave room for too few rounds, and rounds are
what counts."""
BATCHES, FEWEST_BATCHES = 24, 10
"""Batches that a window should hold, and must."""
PLAIN_SHARE, LOOP_SHARE, KNOCK_SHARE = 0.18, 0.55, 0.25
TIGHT_SHARE = 0.3
MOST_BLOCKS, GOOD_BLOCKS = 6, 3
"""Three mirrored blocks give six differences, from which the bootstrap over them is worth its name."""
FIRST_WINDOW_S = 1.0
MOST_KNOCKED = 3
WORTH = 0.08
"""Part of the loader's time from which a stage is left out in an experiment."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What the first rounds took."""

    batch_s: float
    """Of a step of the real loop, or of a batch of the loader alone if there is no step."""
    loader_batch_s: float
    extra_s: float
    """Of a whole round beyond its window: start of the child and of workers, batches that do not count."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Rounds of a measurement."""

    window_s: float
    arms: tuple[str, ...]
    """Beside I and its control."""
    num_blocks: int
    block_s: float
    plain_workers: tuple[int, ...]
    num_plain: int
    """Rounds of each row of the plain table."""
    plain_batches: int
    """Of each of its epochs."""
    left_out: tuple[str, ...]


def make_plan(
    pilot: Pilot,
    *,
    left_s: float,
    num_workers: int,
    plain_workers: Sequence[int],
    has_step: bool,
    has_device: bool,
    num_batches: int | None,
) -> Plan:
    """Shares out what is left.

    Args:
        pilot: What the first rounds took.
        left_s: Seconds for all that follows.
        num_workers: Present setting.
        plain_workers: Rows of the plain table.
        has_step: There is a training step.
        has_device: It puts batches on a device.
        num_batches: Of an epoch; None: not known.
    """
    wanted_s = min(max(BATCHES * pilot.batch_s, SHORTEST_S), LONGEST_S)
    window_s = max(wanted_s, FEWEST_BATCHES * pilot.batch_s)
    round_s = pilot.extra_s + window_s
    plain_s = min(max(BATCHES * pilot.loader_batch_s, SHORTEST_S / 2), LONGEST_S / 2)
    plain_batches = max(2 * max(num_workers, 1) + 4, round(plain_s / max(pilot.loader_batch_s, 1e-4)))
    plain_batches = min(plain_batches, num_batches or plain_batches, 2000)
    # Where the time is short, one round of each row still has to leave most of it to the loop.
    slowness = sum(max(num_workers, 1) / max(number, 1) for number in plain_workers)
    affordable = (TIGHT_SHARE * left_s - len(plain_workers) * pilot.extra_s) / max(
        2 * pilot.loader_batch_s * slowness, 1e-6
    )
    plain_batches = max(min(plain_batches, int(max(affordable, 0.0))), 2 * max(num_workers, 1) + 2)
    # Without workers an epoch takes about as many times longer as there are workers.
    per_plain_s = sum(
        pilot.extra_s + 2 * plain_batches * pilot.loader_batch_s * (max(num_workers, 1) / max(number, 1))
        for number in plain_workers
    )
    num_plain = max(1, min(3, int(PLAIN_SHARE * left_s / max(per_plain_s, 1e-3))))
    left_out = [] if num_plain >= 3 else [f"{num_plain} of 3 rounds of the plain table: a larger --budget holds them"]
    loop_s = (LOOP_SHARE if has_step else 0.15) * left_s
    wishes = _wishes(num_workers, has_step=has_step, has_device=has_device)
    for arms in wishes:
        block_s = 2 * (len(arms) + 2) * round_s
        num_blocks = int(loop_s / block_s)
        if num_blocks >= GOOD_BLOCKS or arms is wishes[-1]:
            break
    missing = [arm for arm in wishes[0] if arm not in arms]
    if missing:
        needed_s = GOOD_BLOCKS * 2 * (len(wishes[0]) + 2) * round_s / LOOP_SHARE
        left_out.append(f"rounds of {', '.join(missing)}: about --budget {1.2 * needed_s:.0f}s holds them")
    return Plan(
        window_s=window_s,
        arms=arms,
        num_blocks=max(1, min(MOST_BLOCKS, num_blocks)),
        block_s=block_s,
        plain_workers=tuple(plain_workers),
        num_plain=num_plain,
        plain_batches=plain_batches,
        left_out=tuple(left_out),
    )


def _wishes(num_workers: int, *, has_step: bool, has_device: bool) -> list[tuple[str, ...]]:
    """Arms beside the present one, from all to those that cannot be done without."""
    if not has_step:
        return [()]
    device = ("Ct",) if has_device else ()
    beside = ("N",) if num_workers else ()
    return list(dict.fromkeys([("C", "L", *beside, *device), ("C", *beside, *device), ("C", *device)]))


def knock_outs_that_fit(
    uses: Sequence[StageUse], *, num_workers: int, left_s: float, round_s: float
) -> tuple[tuple[Stage, ...], int]:
    """(Stages that are worth leaving out, the greatest first; mirrored blocks that fit).

    Args:
        uses: What was accounted; empty: the data set, collation and handing over are tried.
        num_workers: Present setting.
        left_s: Seconds for it.
        round_s: Of one round.
    """
    times: dict[Stage, float] = {use.stage: use.wall_s / use.num_samples for use in uses if use.num_samples}
    servers = max(1, num_workers)
    # Time of the loop's own process is not shared by the workers.
    weights = {stage: time * (servers if stage == "handover" else 1) for stage, time in times.items()}
    total_s = sum(weights.values())
    stages = [
        stage
        for stage in sorted(weights, key=weights.__getitem__, reverse=True)
        if weights[stage] >= WORTH * total_s and stage != "transfer"
    ]
    if not stages:
        stages = ["sample", "collate", *(["handover"] if num_workers else [])]  # type: ignore[list-item]
    stages = stages[:MOST_KNOCKED]
    while stages:
        num_blocks = int(left_s / (2 * (len(stages) + 1) * round_s))
        if num_blocks >= 2 or (num_blocks == 1 and len(stages) == 1):
            return tuple(stages), min(num_blocks, GOOD_BLOCKS)
        stages = stages[:-1]
    return (), 0
