"""The first lines of a verdict: how much the loop waited, for whom, and what the start of an epoch costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces
from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.questions.waiting import (
    FEWEST_S,
    FEWEST_STEPS,
    is_long_enough,
    longest_waits,
    per_batch_s,
    percent,
    slow_worker,
    span,
    stage_of,
    wait_share,
    waiting_kind,
)
from headrace.doctor.wording.samples import count

__all__ = ["main_loop", "render_summary", "summarise"]

WORDS = {
    "read": "waiting inside the data set (files, network, locks)",
    "transform": "computing inside the data set",
    "collate": "joining samples",
    "hand-over": "its way from the worker to the loop",
}


def main_loop(times: StageTimes) -> StageTrace | None:
    """Returns the loop that matters: the longest one that trains; in a script without optimizer steps, the longest."""
    loops = [one for one in times.loaders if one.role == "train"] or [
        one for one in times.loaders if not times.num_steps
    ]
    return max(loops, key=lambda one: one.loop_s, default=None)


def summarise(traces: LoaderTraces, times: StageTimes) -> dict[str, Any]:
    """Returns the measures of the main loop as JSON values; None = not measured."""
    loop = main_loop(times)
    if loop is None:
        return {"num_loaders": len(traces.loaders), "num_steps": times.num_steps, "loop": None}
    trace = next((one for one in traces.loaders if one.number == loop.loader), None)
    stage, slow = stage_of(loop), slow_worker(loop)
    return {
        "num_loaders": len(traces.loaders),
        "num_steps": times.num_steps,
        "loop": {
            "where": loop.where,
            "role": loop.role,
            "is_long_enough": is_long_enough(loop),
            "num_batches": loop.num_batches,
            "loop_s": loop.loop_s,
            "wait_s": loop.wait_s,
            "wait_share": wait_share(loop),
            "median_wait_s": loop.median_wait_s,
            "median_step_s": loop.median_step_s,
            "batches_per_s": loop.num_batches / loop.loop_s if loop.loop_s else None,
            "first_batch_s": None if trace is None else next(iter(_first_waits(trace)), None),
            "epoch_gap_s": None if trace is None else _gap(trace),
            "num_passes": None if trace is None else trace.num_passes,
            "num_made": None if trace is None else trace.num_made,
            "num_made_there": _made_there(loop, traces),
            "num_workers": loop.num_workers,
            "batch_s": per_batch_s(loop),
            "batch_bytes": loop.batch_bytes,
            "limiting_stage": None if stage is None else stage[0],
            "limiting_part": None if stage is None else stage[1],
            "waiting_kind": waiting_kind(loop),
            "num_longest": longest_waits(loop)[0],
            "slow_worker": None if slow is None else slow[0],
        },
    }


def render_summary(target: Mapping[str, Any], width: int = 80) -> str:
    """Returns the block of lines that opens the verdict, with a line break at its end."""
    import textwrap

    lines = []
    for label, text in _sentences(target):
        lead = f"  {label}".ljust(18)
        lines += textwrap.wrap(text, width, initial_indent=lead, subsequent_indent=" " * 18, break_on_hyphens=False)
    return "\n".join([f"WATCHED  {target.get('spec')}: {target.get('ending')}", *lines]) + "\n"


def _sentences(target: Mapping[str, Any]) -> list[tuple[str, str]]:
    watch = target.get("watch")
    if not watch:
        return [("nothing seen", "no process of it loaded data with torch or headrace where headrace could watch")]
    loop = watch["loop"]
    if loop is None:
        return [
            ("no loop", f"{count(watch['num_loaders'], 'loader')}, and no loop that took more than one batch of one")
        ]
    place = f", loader made{_anew(loop)} at {loop['where']}{_beside(loop)}" if loop["where"] else ""
    label = "training" if loop["role"] == "train" else "loop"
    steps = f"{count(loop['num_batches'], 'step')} in {span(loop['loop_s'])}, {loop['batches_per_s'] or 0:.3g} steps/s{place}"
    told = [(label, steps)]
    if not loop["is_long_enough"]:
        needed = f"{FEWEST_STEPS} steps and {FEWEST_S:g} s are needed to tell a habit from a start"
        told.append(("waiting", f"too short to judge: {needed}"))
    else:
        share = (
            f"for data in {percent(loop['wait_share'])} of the time ({span(loop['wait_s'])}, first batches not counted)"
        )
        median = f"the median step waits {span(loop['median_wait_s'])} and works {span(loop['median_step_s'])}"
        told += [("waiting", f"{share}; {median}"), ("who waits", _who(loop))]
    told.append(("first batch", _starts(loop)))
    return told


def _made_there(loop: StageTrace, traces: LoaderTraces) -> int:
    """Loaders for the same purpose that the same line made, be it over other data or for another training."""
    return sum(one.num_made for one in traces.loaders if (one.where, one.role) == (loop.where, loop.role))


def _anew(loop: Mapping[str, Any]) -> str:
    """How often the script made the loader, if more than once."""
    made = loop.get("num_made") or 1
    if made == 1:
        return ""
    return f" anew for each epoch, {made:,} times," if made == loop["num_passes"] else f" {made:,} times"


def _beside(loop: Mapping[str, Any]) -> str:
    """How many loaders of that place these steps are not from."""
    others = (loop.get("num_made_there") or 0) - (loop.get("num_made") or 0)
    return (
        f" ({count(others, 'loader')} more made there, over other data or for another training)" if others > 0 else ""
    )


def _who(loop: Mapping[str, Any]) -> str:
    """Who waits for what."""
    kind, stage = loop["waiting_kind"], loop["limiting_stage"]
    if loop["wait_share"] < 0.02:
        return "hardly anybody: batches are ready when the loop asks for them"
    if kind == "one-worker":
        return f"the loop waits for worker {loop['slow_worker']}, which is slower than the others"
    if kind == "tail":
        return f"the loop waits for a few slow batches: {count(loop['num_longest'], 'step')} hold most of the waiting"
    if kind == "bursts":
        return "the loop waits now and then, when slow batches meet; in between its workers are idle"
    if kind is None:
        return "the loop waits a little; nothing of the loader's own explains it"
    if stage is None:
        return "the loop waits for the loader; no single stage of it takes most of the time"
    if stage == "hand-over":
        return f"the loop waits for batches that are ready: {WORDS[stage]} takes {percent(loop['limiting_part'])} of the waiting"
    who = "its workers" if loop["num_workers"] else "itself, because it loads without workers"
    return (
        f"the loop waits for {who}: {percent(loop['limiting_part'])} of the {span(loop['batch_s'])} that a batch takes is "
        f"{WORDS[stage]}"
    )


def _starts(loop: Mapping[str, Any]) -> str:
    first, gap = loop["first_batch_s"], loop["epoch_gap_s"]
    text = "not measured" if not isinstance(first, float) else f"after {span(first)}"
    if gap is not None:
        text += f"; later passes ({loop['num_passes'] - 1:,}) began after {span(gap)} each"
    return text


def _first_waits(trace: LoaderTrace) -> list[float]:
    return [one.first_wait_s for one in trace.passes if one.num_batches]


def _gap(trace: LoaderTrace) -> float | None:
    """Median wait for the first batch of the passes after the first one."""
    later = sorted(_first_waits(trace)[1:])
    return later[len(later) // 2] if later else None
