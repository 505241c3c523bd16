"""Sees headrace's own loader: it says of itself what torch's has to be watched for."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from headrace.doctor.watch.frames import is_called_directly, user_place
from headrace.doctor.watch.hooks import Hooks
from headrace.doctor.watch.loader_facts import kind_name
from headrace.doctor.watch.record import LoaderFacts, LoaderRecord
from headrace.doctor.watch.timeline import Timeline

__all__ = ["hook_own_loader"]


def hook_own_loader(
    hooks: Hooks,
    record_of: Callable[..., LoaderRecord | None],
    walked: Callable[..., LoaderRecord | None],
    timeline: Timeline,
    told: Callable[[float], None],
) -> None:
    """Hooks into `hr.DataLoader`."""
    from headrace.engine.loader import DataLoader

    make, begin, hand_over = DataLoader.__init__, DataLoader.__iter__, DataLoader._hand_over

    @functools.wraps(make)
    def watched_init(loader: Any, *args: Any, **kwargs: Any) -> None:
        make(loader, *args, **kwargs)
        record_of(loader, _facts_of, user_place())

    def watched_iter(loader: Any) -> Iterator[Any]:
        record = walked(loader, _facts_of)
        if record is not None:
            place = user_place()
            if place is not None:
                record.places[place] += 1
            record.num_library_passes += not is_called_directly()
            timeline.walk_begins()
            walk = record.begin(time.perf_counter(), timeline.num_steps)
            walk.order_hash = None
        return begin(loader)

    def watched_hand_over(loader: Any, run: Any) -> Generator[Any, None, None]:
        record = record_of(loader, _facts_of)
        walk = None if record is None else record.current
        if record is None or walk is None:
            yield from hand_over(loader, run)
            return
        walk.ask(time.perf_counter())
        try:
            for batch in hand_over(loader, run):
                now = time.perf_counter()
                walk.hand_over(now)
                timeline.handed_over(record.number)
                told(now)
                yield batch
                walk.ask(time.perf_counter())
        finally:
            walk.is_left = True

    hooks.replace(DataLoader, "__init__", watched_init)
    hooks.replace(DataLoader, "__iter__", watched_iter)
    hooks.replace(DataLoader, "_hand_over", watched_hand_over)


def _facts_of(loader: Any) -> LoaderFacts:
    workers = loader.num_workers
    sampler = loader._batch_sampler or loader._sampler
    shuffles = bool(loader._arguments.shuffle) or sampler is not None
    return LoaderFacts(
        kind="headrace.DataLoader",
        dataset_kind=kind_name(loader.dataset),
        num_samples=len(loader.dataset) if hasattr(loader.dataset, "__len__") else None,
        batch_size=loader.batch_size,
        drop_last=bool(loader.drop_last),
        num_workers=workers if isinstance(workers, int) else 0,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=True,  # its workers live on from pass to pass
        sampler_kind=kind_name(sampler) if sampler is not None else "its own order",
        shuffles=shuffles,
        has_set_epoch=False,  # it counts its epochs itself
        is_distributed=(loader.world_size or 1) > 1,
    )
