"""A timed run as a trace that chrome://tracing and Perfetto open; and the loop's spans in a profile of torch's.

loop      | wait | compute | wait | compute ...
worker 0  | samples ... | collate |          a ready batch: a slice of its own, from being made to being taken
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from headrace.doctor.timing.timed import Timed

__all__ = ["STEP", "WAIT", "span", "write_trace"]

WAIT, STEP = "headrace wait", "headrace step"
"""Names of the spans in a profile."""
_PROCESS = 1
"""Number of the one process of the trace; the tracks are its threads: 0 the loop, 1 and up the workers."""


def write_trace(timed: Timed, path: str | pathlib.Path) -> None:
    """Writes the trace of one run. Times begin with the run; batches that were never taken are not in it.

    Source: Trace Event Format, Google: complete events (X), nestable async events (b, e), metadata (M).
    """
    document = {"traceEvents": list(_events(timed)), "displayTimeUnit": "ms", "otherData": {"headrace": timed.kind}}
    pathlib.Path(path).write_text(json.dumps(document), encoding="utf-8")


def _events(timed: Timed) -> Iterator[dict[str, Any]]:
    workers = sorted({one.worker for one in timed.batches_made})
    yield _named("process_name", 0, f"headrace measure: {timed.kind}, {timed.setting.name}")
    for track, name in ((0, "loop"), *((worker + 1, f"worker {worker}") for worker in workers)):
        yield _named("thread_name", track, name)
        yield {"name": "thread_sort_index", "ph": "M", "pid": _PROCESS, "tid": track, "args": {"sort_index": track}}
    yield from sorted((*_loop(timed), *_workers(timed)), key=lambda event: (event["ts"], event["ph"] == "e"))


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _loop(timed: Timed) -> Iterator[dict[str, Any]]:
    steps = timed.steps
    ends = (*steps.asked_s[1:], steps.end_s)
    for place, (asked, got, end) in enumerate(zip(steps.asked_s, steps.got_s, ends, strict=True)):
        about = {"batch": place, "epoch": steps.epochs[place], "samples": steps.num_samples[place]}
        yield _slice(timed, "wait", 0, asked, got, about)
        yield _slice(timed, "compute", 0, got, end, about)


def _workers(timed: Timed) -> Iterator[dict[str, Any]]:
    for one in timed.batches_made:
        about: dict[str, Any] = {"batch": one.batch}
        if one.slowest_sample_s is not None:
            about["slowest sample, ms"] = round(1e3 * one.slowest_sample_s, 3)
        track = one.worker + 1
        yield _slice(timed, "samples", track, one.began_s, one.fetched_s, about)
        yield _slice(timed, "collate", track, one.fetched_s, one.made_s, about)
        if one.batch < len(timed.steps.got_s):
            # Others are made meanwhile, so it cannot be a slice of the worker's own track.
            taken = max(one.made_s, timed.steps.got_s[one.batch])
            for phase, at in (("b", one.made_s), ("e", taken)):
                yield {
                    "name": "ready",
                    "cat": "ready",
                    "ph": phase,
                    "id": one.batch,
                    "ts": _us(timed, at),
                    "pid": _PROCESS,
                    "tid": track,
                    "args": {"batch": one.batch},
                }


def _slice(timed: Timed, name: str, track: int, start_s: float, end_s: float, about: dict[str, Any]) -> dict[str, Any]:
    start, end = _us(timed, start_s), _us(timed, end_s)
    return {
        "name": name,
        "cat": "loop" if track == 0 else "worker",
        "ph": "X",
        "ts": start,
        "dur": max(0.0, round(end - start, 3)),
        "pid": _PROCESS,
        "tid": track,
        "args": about,
    }


def _us(timed: Timed, at_s: float) -> float:
    """Microseconds since the run began; what was before it, by a clock's rounding, is at its beginning."""
    return max(0.0, round(1e6 * (at_s - timed.began_s), 3))


def span(name: str) -> contextlib.AbstractContextManager[Any]:
    """Returns a span in torch's profile where one is being taken in this thread; else nothing, at nearly no cost.

    Args:
        name: `WAIT` or `STEP`.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.autograd._profiler_enabled():
        return contextlib.nullcontext()
    made: contextlib.AbstractContextManager[Any] = torch.profiler.record_function(name)
    return made
