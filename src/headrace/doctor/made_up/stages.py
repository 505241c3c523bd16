"""Made-up evidence of what `watch` sees, in few words: for the examples of the rules. Nothing here is measured."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces, PassTrace
from headrace.doctor.evidence.stages import StageTimes, StageTrace, WorkerTrace

__all__ = ["loop", "passed", "times", "traced", "traces", "workers"]


def workers(
    *batch_s: float, num_batches: int = 250, idle_s: float = 0.0, collate: float = 0.1
) -> tuple[WorkerTrace, ...]:
    """Workers by the seconds that each takes for a batch, of which the data set takes all but the part `collate`."""
    return tuple(
        WorkerTrace(
            num_batches=num_batches,
            fetch_s=(1 - collate) * num_batches * seconds,
            fetch_cpu_s=0.9 * (1 - collate) * num_batches * seconds,
            collate_s=collate * num_batches * seconds,
            typical_s=seconds,
            idle_s=idle_s,
        )
        for seconds in batch_s
    )


def loop(share: float = 0.4, *, steps: int = 500, step_s: float = 0.1, **more: Any) -> StageTrace:
    """A training loop that waits `share` of its time, evenly; two workers that compute in the data set."""
    loop_s = steps * step_s
    wait_s = share * loop_s
    facts: dict[str, Any] = {
        "loader": 0,
        "where": "train.py:31",
        "role": "train",
        "num_workers": 2,
        "prefetch_factor": 2,
        "num_batches": steps,
        "loop_s": loop_s,
        "wait_s": wait_s,
        "median_wait_s": share * step_s,
        "median_step_s": (1 - share) * step_s,
        "wait_shares": (share,) * 8,
        "worst_wait_s": 0.03 * wait_s,
        "num_worst": max(1, steps // 50),
        "num_holding": round(0.8 * steps),
        "num_waited": steps if share > 0.05 else 0,
        "handover_s": 0.02 * wait_s,
        "handover_cpu_s": 0.5 * (more.get("handover_s") or 0.02 * wait_s),
        "num_measured": steps,
        "num_samples": 32 * steps,
        "fetch_s": 1.8 * loop_s,
        "fetch_cpu_s": 1.7 * loop_s,
        "fetch_queued_s": 0.0,
        "collate_s": 0.1 * loop_s,
        "batch_bytes": 19_267_584.0,
        "workers": workers(0.19, 0.19),
    }
    return StageTrace(**{**facts, **more})


def times(*loops: StageTrace, num_steps: int | None = None, usable_cores: int = 8) -> StageTimes:
    """All loops of a script, with a step for each batch if nothing else is said."""
    total = sum(one.num_batches for one in loops) if num_steps is None else num_steps
    return StageTimes(loaders=loops, num_steps=total, usable_cores=usable_cores)


def passed(num_batches: int = 100, **more: Any) -> PassTrace:
    """One epoch, walked to its end."""
    facts: dict[str, Any] = {
        "started_s": 0.0,
        "wall_s": 0.1 * num_batches,
        "first_wait_s": 0.1,
        "wait_s": 0.0,
        "longest_waits_s": (),
        "num_batches": num_batches,
        "num_samples": 32 * num_batches,
        "is_exhausted": True,
        "order_hash": 1,
        "num_worker_starts": 0,
        "num_steps": num_batches,
        "first_batch_hash": 1,
    }
    return PassTrace(**{**facts, **more})


def traced(*passes: PassTrace, **more: Any) -> LoaderTrace:
    """A training loader with two workers, and its passes."""
    facts: dict[str, Any] = {
        "number": 0,
        "where": "train.py:31",
        "kind": "torch.utils.data.DataLoader",
        "role": "train",
        "dataset_kind": "Photos",
        "num_samples": 3_200,
        "batch_size": 32,
        "drop_last": False,
        "num_workers": 2,
        "persistent_workers": False,
        "sampler_kind": "torch.utils.data.RandomSampler",
        "shuffles": True,
        "has_set_epoch": False,
        "num_set_epochs": 0,
        "is_distributed": False,
        "iter_places": (("train.py:40", len(passes)),),
        "passes": passes,
        "num_passes": len(passes),
        "num_drawn": 3_200,
        "root": "Photos 0",
        "num_worker_starts": sum(one.num_worker_starts for one in passes),
        "num_short_passes": sum(one.num_batches <= 1 and not one.is_exhausted for one in passes),
        "batch_s": 0.1,
        "has_moved_samples": True,
    }
    return LoaderTrace(**{**facts, **more})


def traces(*loaders: LoaderTrace, wall_s: float = 100.0, **more: Any) -> LoaderTraces:
    """Everything that a script's loaders did."""
    facts: dict[str, Any] = {
        "script": "train.py",
        "wall_s": wall_s,
        "rank": 0,
        "world_size": 1,
        "loaders": loaders,
        "overlaps": (),
        "outcome": "finished",
    }
    return LoaderTraces(**{**facts, **more})
