"""One map-style data set of numpy arrays, opened by each library: as its documentation does, with named settings.

Each function returns an iterable whose every iter() is one epoch. Libraries are imported inside, for each has an
environment of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.limits import continued
from benchmarks.regime import Epochs, Side, Work

MakeDataset = Callable[[Work], Any]

HEADRACE = {
    "auto": {"num_workers": "auto"},
    "no workers": {},
    "2 threads": {"num_workers": 2, "runner": "threads"},
    "2 processes": {"num_workers": 2, "persistent_workers": True},
}
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


def headrace_sides(make: MakeDataset, batch_size: int, settings: dict[str, dict[str, Any]] | None = None) -> list[Side]:
    """Our loader: automatic, then each way by name."""

    def opener(options: dict[str, Any]) -> Callable[[Work], Any]:
        def open_loader(work: Work) -> Any:
            import headrace as hr

            return hr.DataLoader(make(work), batch_size=batch_size, shuffle=True, seed=0, **options)

        return open_loader

    return [
        Side(
            name=f"headrace, {name}",
            library="headrace",
            open=opener(options),
            imports=("torch.utils.data", "headrace.engine.loader"),
        )
        for name, options in (settings or HEADRACE).items()
    ]


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


def torchdata_side(make: MakeDataset, batch_size: int, num_threads: int) -> Side:
    """torchdata's nodes: sampler, parallel map in threads, batch, collate."""

    def open_loader(work: Work) -> Any:
        import torch.utils.data as tud
        from torchdata import nodes

        dataset = make(work)
        node = nodes.SamplerWrapper(tud.RandomSampler(dataset))
        node = nodes.ParallelMapper(node, dataset.__getitem__, num_workers=num_threads, method="thread", in_order=True)
        node = nodes.Batcher(node, batch_size, drop_last=False)
        node = nodes.Mapper(node, tud.default_collate)
        return nodes.Loader(nodes.Prefetcher(node, 4))

    name = f"torchdata nodes, {num_threads} threads"
    return Side(name=name, library="torchdata", open=open_loader, imports=("torchdata.nodes",))


def grain_side(make: MakeDataset, batch_size: int, *, threads: int = 0, workers: int = 0) -> Side:
    """Grain: threads read ahead in this process, or worker processes."""

    def open_loader(work: Work) -> Any:
        import grain

        dataset = make(work)
        ahead = max(2 * batch_size, 4 * threads)

        def epoch(number: int) -> Any:
            chain = grain.MapDataset.source(dataset).shuffle(seed=number)
            return chain.to_iter_dataset(grain.ReadOptions(num_threads=threads or 1, prefetch_buffer_size=ahead)).batch(
                batch_size
            )

        if not workers:
            return Epochs(epoch)
        chain = grain.MapDataset.source(dataset).seed(0).shuffle().batch(batch_size).repeat()
        options = grain.multiprocessing.MultiprocessingOptions(num_workers=workers)
        batches = iter(chain.to_iter_dataset().mp_prefetch(options))
        return continued(batches, math.ceil(len(dataset) / batch_size))

    how = f"{workers} processes" if workers else f"{threads} threads"
    return Side(name=f"Grain, {how}", library="grain", open=open_loader, imports=("grain",))


def spdl_side(make: MakeDataset, batch_size: int, *, threads: int, unit: str = "sample", ordered: bool = True) -> Side:
    """SPDL's pipeline in this process: one task per sample, or one per batch."""

    def open_loader(work: Work) -> Any:
        from spdl.pipeline import PipelineBuilder

        dataset = make(work)

        def load(rows: list[int]) -> Any:
            return stack([dataset[row] for row in rows])

        def epoch(number: int) -> Iterator[Any]:
            rows = np.random.default_rng(number).permutation(len(dataset)).tolist()
            order = "input" if ordered else "completion"
            if unit == "batch":
                source = [rows[k : k + batch_size] for k in range(0, len(rows), batch_size)]
                chain = PipelineBuilder().add_source(source).pipe(load, concurrency=threads, output_order=order)
            else:
                chain = (
                    PipelineBuilder()
                    .add_source(rows)
                    .pipe(dataset.__getitem__, concurrency=threads, output_order=order)
                )
                chain = chain.aggregate(batch_size).pipe(stack)
            pipeline = chain.add_sink(4).build(num_threads=threads + (unit == "sample"))
            with pipeline.auto_stop():
                yield from pipeline

        return Epochs(epoch)

    name = f"SPDL, {threads} threads, a {unit} each"
    return Side(name=name, library="spdl", open=open_loader, imports=("spdl.pipeline",))
