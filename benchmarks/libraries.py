"""One map-style data set of numpy arrays, opened by each library: as its documentation does, with named settings.

Each function returns an iterable whose every iter() is one epoch. Libraries are imported inside, for each has an
environment of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.limits import continued
from benchmarks.regime import Epochs, Side, Work

MakeDataset = Callable[[Work], Any]

AUTO = {"auto": {"num_workers": "auto", "persistent_workers": True}}
INLINE = {"no workers": {}}
THREADS = {"2 threads": {"num_workers": 2, "runner": "threads"}}
HOST = {"host of 2 threads": {"num_workers": 2, "runner": "host"}}
PROCESSES = {"2 processes": {"num_workers": 2, "persistent_workers": True}}
HEADRACE = {**AUTO, **PROCESSES}
TORCH = {
    "no workers": {},
    "2 workers": {"num_workers": 2, "persistent_workers": True},
}


def stack(samples: list[Any]) -> Any:
    """Joins samples by numpy, field by field: what people write for loaders that have no default."""
    if isinstance(samples[0], dict):
        return {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}
    if isinstance(samples[0], tuple):
        return tuple(np.stack(field) for field in zip(*samples, strict=True))
    return np.stack(samples)


def headrace_sides(
    make: MakeDataset, batch_size: int, settings: dict[str, dict[str, Any]], what: str = ""
) -> list[Side]:
    """Our loader under each setting; `what` says in the name which data set it is, where there are several."""

    def opener(options: dict[str, Any]) -> Callable[[Work], Any]:
        def open_loader(work: Work) -> Any:
            import headrace as hr

            return hr.DataLoader(make(work), batch_size=batch_size, shuffle=True, seed=0, **options)

        return open_loader

    return [
        Side(
            name=f"headrace, {what}{name}",
            library="headrace",
            open=opener(options),
            imports=("torch.utils.data", "headrace.engine.loader"),
            is_settled=is_settled if options.get("num_workers") == "auto" else None,
            notes=notes if options.get("num_workers") == "auto" else None,
        )
        for name, options in (settings or HEADRACE).items()
    ]


def is_settled(loader: Any) -> bool:
    """True once `num_workers="auto"` has chosen, by its own account."""
    decisions = loader.stats().decisions
    return bool(decisions) and decisions[-1].reason.startswith("settled")


def notes(loader: Any) -> dict[str, Any]:
    """What `num_workers="auto"` did, and why."""
    decisions = loader.stats().decisions
    return {
        "chose": decisions[-1].after if decisions else "inline",
        "decisions": [f"{each.time_s:.2f} s: {each.before} to {each.after}: {each.reason}" for each in decisions],
    }


def torch_sides(make: MakeDataset, batch_size: int, settings: dict[str, dict[str, Any]] | None = None) -> list[Side]:
    """PyTorch's own loader; the best of its settings is what ours is compared with."""

    def opener(options: dict[str, Any]) -> Callable[[Work], Any]:
        def open_loader(work: Work) -> Any:
            import torch
            import torch.utils.data

            torch.set_num_threads(1)
            return torch.utils.data.DataLoader(make(work), batch_size=batch_size, shuffle=True, **options)

        return open_loader

    return [
        Side(name=f"torch, {name}", library="torch", open=opener(options), imports=("torch.utils.data",))
        for name, options in (settings or TORCH).items()
    ]


def torch_batched(make: MakeDataset, batch_size: int, num_workers: int = 0) -> Side:
    """PyTorch's loader with a batched sampler: the data set is asked for a list of rows and does the gathering."""

    def open_loader(work: Work) -> Any:
        import torch.utils.data as tud

        dataset = make(work)
        sampler = tud.BatchSampler(tud.RandomSampler(dataset), batch_size, drop_last=False)
        more = {"num_workers": num_workers, "persistent_workers": True} if num_workers else {}
        return tud.DataLoader(dataset, sampler=sampler, batch_size=None, **more)

    how = f"{num_workers} workers" if num_workers else "no workers"
    return Side(name=f"torch, batched sampler, {how}", library="torch", open=open_loader, imports=("torch.utils.data",))


def torchdata_side(make: MakeDataset, batch_size: int, num_threads: int, unit: str = "sample") -> Side:
    """torchdata's nodes: sampler, parallel map in threads, batch, collate; or a list of rows per task."""

    def open_loader(work: Work) -> Any:
        import torch.utils.data as tud
        from torchdata import nodes

        dataset = make(work)
        sampler = tud.RandomSampler(dataset)
        if unit == "batch":
            node = nodes.SamplerWrapper(tud.BatchSampler(sampler, batch_size, drop_last=False))
            node = nodes.ParallelMapper(node, rows_of(dataset), num_workers=num_threads, method="thread")
            return nodes.Loader(nodes.Prefetcher(node, 4))
        node = nodes.ParallelMapper(
            nodes.SamplerWrapper(sampler), dataset.__getitem__, num_workers=num_threads, method="thread"
        )
        node = nodes.Batcher(node, batch_size, drop_last=False)
        return nodes.Loader(nodes.Prefetcher(nodes.Mapper(node, tud.default_collate), 4))

    name = f"torchdata nodes, {num_threads} threads, a {unit} each"
    return Side(name=name, library="torchdata", open=open_loader, imports=("torchdata.nodes",))


def rows_of(dataset: Any) -> Callable[[list[int]], Any]:
    """How a list of rows becomes a batch: by the data set at once where it can, or one by one and stacked."""
    if getattr(dataset, "gathers", False):
        return dataset.__getitem__
    return lambda rows: stack([dataset[row] for row in rows])


def grain_side(make: MakeDataset, batch_size: int, *, threads: int = 0, workers: int = 0) -> Side:
    """Grain: threads read batches ahead in this process, or worker processes do; with neither, the caller.

    Its threads fetch what the last step of the MapDataset gives. That is a batch here: keeping single samples ahead costs
    time in proportion to how many are kept, for each of them (0.2.18).
    """

    def open_loader(work: Work) -> Any:
        import grain

        dataset = make(work)

        def epoch(number: int) -> Any:
            chain = grain.MapDataset.source(dataset).shuffle(seed=number).batch(batch_size)
            return chain.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=2 * threads))

        if not workers:
            return Epochs(epoch)
        chain = grain.MapDataset.source(dataset).seed(0).shuffle().batch(batch_size).repeat()
        options = grain.multiprocessing.MultiprocessingOptions(num_workers=workers)
        batches = iter(chain.to_iter_dataset().mp_prefetch(options))
        return continued(batches, math.ceil(len(dataset) / batch_size))

    how = f"{workers} processes" if workers else f"{threads} threads" if threads else "no threads"
    return Side(name=f"Grain, {how}", library="grain", open=open_loader, imports=("grain",))


def grain_vectorised(make: MakeDataset, batch_size: int) -> Side:
    """Grain over batches of row numbers, gathered at once."""

    def open_loader(work: Work) -> Any:
        import grain

        dataset = make(work)

        def epoch(number: int) -> Any:
            order = grain.MapDataset.range(len(dataset)).shuffle(seed=number).batch(batch_size)
            return order.map(rows_of(dataset)).to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))

        return Epochs(epoch)

    return Side(name="Grain, vectorised", library="grain", open=open_loader, imports=("grain",))


def spdl_side(make: MakeDataset, batch_size: int, *, threads: int, unit: str = "sample", ordered: bool = True) -> Side:
    """SPDL's pipeline in this process: one task per sample, or one per batch; it runs on over the border of epochs."""

    def open_loader(work: Work) -> Any:
        from spdl.pipeline import PipelineBuilder

        dataset = make(work)
        assert unit == "batch" or len(dataset) % batch_size == 0, "samples of two epochs would share a batch"

        def rows() -> Iterator[int]:
            for epoch in itertools.count():
                yield from np.random.default_rng(epoch).permutation(len(dataset)).tolist()

        def batches() -> Iterator[list[int]]:
            for epoch in itertools.count():
                order = np.random.default_rng(epoch).permutation(len(dataset)).tolist()
                yield from (order[begin : begin + batch_size] for begin in range(0, len(order), batch_size))

        order = "input" if ordered else "completion"
        if unit == "batch":
            chain = PipelineBuilder().add_source(batches())
            chain = chain.pipe(rows_of(dataset), concurrency=threads, output_order=order)
        else:
            chain = PipelineBuilder().add_source(rows())
            chain = chain.pipe(dataset.__getitem__, concurrency=threads, output_order=order)
            chain = chain.aggregate(batch_size).pipe(stack)
        pipeline = chain.add_sink(4).build(num_threads=threads + (unit == "sample"))
        return spdl_epochs(pipeline, math.ceil(len(dataset) / batch_size))

    name = f"SPDL, {threads} threads, a {unit} each"
    return Side(name=name, library="spdl", open=open_loader, imports=("spdl.pipeline",))


def spdl_epochs(pipeline: Any, num_batches: int) -> Epochs:
    """Cuts an endless pipeline into epochs; it begins with the first one."""

    def batches() -> Iterator[Any]:
        with pipeline.auto_stop():
            yield from pipeline

    return continued(batches(), num_batches)


def gathering_sides(make: MakeDataset, batch_size: int, tf_gather: Callable[[Work], Any]) -> list[Side]:
    """The peers where a batch can be gathered from memory: each as its documentation does it, and at once where it can."""
    return [
        torchdata_side(make, batch_size, 2, "batch"),
        grain_side(make, batch_size),
        grain_vectorised(make, batch_size),
        spdl_side(make, batch_size, threads=2, unit="batch"),
        Side(name="tf.data, gather", library="tensorflow", open=tf_gather, imports=("tensorflow",), warm_s=2),
    ]
