"""From all rounds to the measurement: what each room says of them, put together. Pure: nothing runs here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from headrace.doctor.measuring.arms import arms_of, rate_of
from headrace.doctor.measuring.causes.enough import supplies_enough
from headrace.doctor.measuring.conclusion import conclude
from headrace.doctor.measuring.decomposition import decompose, noise_of
from headrace.doctor.measuring.model import Conclusion, Estimate, Known, Measurement, Resources, RoundRun, Scope
from headrace.doctor.measuring.plain import Checked, plain_rows, plain_says
from headrace.doctor.measuring.resources import resources_for
from headrace.doctor.measuring.stages import (
    OF_LOOP,
    ceiling_of,
    explained,
    find_knock_outs,
    find_stages,
    predicted_gains,
)
from headrace.doctor.measuring.waiting import find_waiting
from headrace.doctor.meters.page_cache import CacheLabel
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.timed import StageUse, Timed

__all__ = ["MARGIN", "Found", "assemble"]

MARGIN = 0.25
"""What a loader should be able to do beyond the need: samples differ, and so do steps."""
OPEN = Conclusion(verdict="inconclusive", sentence="", causes=())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found(Known):
    """What is known beside the rounds, with what only their scope and the plain table hold."""

    cache: CacheLabel
    is_local: bool | None = None
    decodes: bool | None = None
    is_random: bool | None = None
    checked: Mapping[int, Checked] = dataclasses.field(default_factory=dict)


def assemble(found: Found, runs: Sequence[RoundRun]) -> Measurement:
    """Computes everything that follows from the rounds, and the conclusion."""
    runs, mixed = of_one_kind(runs)
    found = dataclasses.replace(found, left_out=(*found.left_out, *mixed))
    cores = float(found.preflight.machine.usable_cores)
    account = _first(runs, "L accounted") or _first(runs, "I accounted")
    uses: tuple[StageUse, ...] = account.uses if account is not None else ()
    predicted = predicted_gains(uses, num_workers=found.num_workers, cores=cores)
    knock_outs = find_knock_outs(runs, predicted)
    limits = explained(knock_outs, predicted) if uses or knock_outs else []
    has_step = found.consumer is not None
    decomposition = decompose(runs, found.cache) if has_step else None
    noise = noise_of(runs, "I" if has_step else "L")
    plain = plain_rows(runs, found.checked, found.cache)
    arms = arms_of(runs, found.cache)
    need = _need(runs, found.cache) if has_step else None
    loop = _first(runs, "I") or _first(runs, "L")
    measurement = Measurement(
        **{field.name: getattr(found, field.name) for field in dataclasses.fields(Known)},
        scope=Scope(
            is_local=found.is_local,
            decodes=found.decodes if found.decodes is not None else _decodes(uses),
            is_random=found.is_random,
            cache=found.cache,
            left_out=("batches in flight when the clock starts", *(() if _has_starts(runs) else ("starts of epochs",))),
        ),
        plain=plain,
        plain_says=plain_says(plain),
        runs=tuple(runs),
        arms=arms,
        starts=loop.starts if loop is not None else (),
        decomposition=decomposition,
        waiting=find_waiting(runs) if has_step else None,
        stages=find_stages(
            uses,
            knock_outs,
            limit=limits[0][0] if limits else None,
            is_noisy=found.preflight.noise in {"noisy", "loud"},
        ),
        knock_outs=knock_outs,
        ceiling=ceiling_of(uses, num_workers=found.num_workers, cores=cores) if uses else None,
        noise=None if noise is None else noise[0],
        need_per_s=need,
        resources=_resources(need, runs, uses, found),
        conclusion=OPEN,
    )
    if supplies_enough(measurement):  # the slowest stage of a loader that is fast enough limits nothing
        rows = [row if row.stage in OF_LOOP else dataclasses.replace(row, is_limit=False) for row in measurement.stages]
        measurement = dataclasses.replace(measurement, stages=tuple(rows))
    return dataclasses.replace(measurement, conclusion=conclude(measurement))


def of_one_kind(runs: Sequence[RoundRun]) -> tuple[list[RoundRun], list[str]]:
    """(Rounds, what is to be said): an arm never mixes steady rates with those of whole epochs, starts included.

    Where it has both, only the steady ones count; where epochs are too short for a steady part, that is said.
    """
    steady = {run.arm for run in runs if rate_of(run) is not None and not _is_whole(run)}
    found, told = list[RoundRun](), dict[str, None]()
    for run in runs:
        if run.arm.startswith("plain") or run.timed is None or not _is_whole(run):
            found.append(run)
        elif run.arm in steady:
            why = "no steady part, which other rounds of its kind have"
            found.append(dataclasses.replace(run, timed=dataclasses.replace(run.timed, window=None), failure=why))
            told[f"the rate of round {run.id}: {why}"] = None
        else:
            found.append(run)
            told[f"a steady rate of {run.arm}: its epochs are too short, so that their starts are in it"] = None
    return found, list(told)


def _is_whole(run: RoundRun) -> bool:
    return run.timed is not None and run.timed.window is not None and run.timed.window.has_starts


def _has_starts(runs: Sequence[RoundRun]) -> bool:
    return any(_is_whole(run) for run in runs if not run.arm.startswith("plain"))


def _first(runs: Sequence[RoundRun], arm: str) -> Timed | None:
    return next((run.timed for run in runs if run.arm == arm and rate_of(run) is not None), None)


def _decodes(uses: Sequence[StageUse]) -> bool | None:
    """True if decoding was seen; None: stages could not be told apart, or nothing was accounted."""
    seen = {use.stage for use in uses if use.wall_s > 0}
    return True if "decode" in seen else None


def _need(runs: Sequence[RoundRun], cache: CacheLabel) -> Estimate | None:
    compute = next((arm.rounds for arm in arms_of(runs, cache) if arm.name == "C"), None)
    if compute is None:
        return None
    low, high = compute.interval_per_s.low, compute.interval_per_s.high
    more = 1 + MARGIN
    return Estimate(value=more * compute.mean_per_s, interval=Interval(more * low, more * high))


def _resources(
    need: Estimate | None, runs: Sequence[RoundRun], uses: Sequence[StageUse], found: Found
) -> tuple[Resources, ...]:
    alone = _first(runs, "L") or _first(runs, "L accounted")
    if need is None or alone is None:
        return ()
    peaks = None if found.memory is None else found.memory.series.peaks
    return resources_for(
        need.value,
        timed=alone,
        uses=uses,
        memory_bytes=None if peaks is None else peaks.total_bytes,
        shm_bytes=found.memory.ahead_bytes if found.memory is not None and found.num_workers else None,
    )
