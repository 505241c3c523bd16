"""Libraries that read a format of their own: written once outside all measured time, then opened as they document it.

Each writer goes through the samples of a map-style data set; `load` makes of a stored sample, a tuple of fields, what the
loop gets. All of them shuffle as they do by default, within blocks or windows: a cheaper order than the full permutation
of the other sides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.libraries import MakeDataset
from benchmarks.regime import Side, Work, make_folder

Load = Callable[[Any], Any]
MakeLoad = Callable[[Work], Load]
NUM_WORKERS = 2


def written(write: Callable[[Work, Path], None], name: str) -> Callable[[Work], None]:
    """Returns a `prepare` that writes a folder beside the data unless it is there."""
    return lambda work: make_folder(work.folder / name, lambda folder: write(work, folder))


def whole(work: Work) -> Load:  # noqa: ARG001 one signature
    """The stored fields as they are."""
    return tuple


# LitData: chunks written by `optimize`, read by StreamingDataset and StreamingDataLoader.


def litdata_side(make: MakeDataset, batch_size: int, make_load: MakeLoad = whole) -> Side:
    def write(work: Work, folder: Path) -> None:
        import litdata

        dataset = make(work)
        litdata.optimize(
            functools.partial(_sample, dataset),
            list(range(len(dataset))),
            output_dir=str(folder),
            chunk_bytes="64MB",  # what its documentation uses
            num_workers=1,
            start_method="fork",
            verbose=False,
        )

    def open_loader(work: Work) -> Any:
        import litdata

        folder = str(work.folder / "litdata")
        transform = [functools.partial(_loaded, make_load(work))]
        dataset = litdata.StreamingDataset(folder, shuffle=True, drop_last=False, transform=transform)
        return litdata.StreamingDataLoader(
            dataset, batch_size=batch_size, num_workers=NUM_WORKERS, persistent_workers=True
        )

    name = f"LitData, {NUM_WORKERS} workers, own shuffle"
    return Side(name=name, library="litdata", open=open_loader, imports=("litdata",), prepare=written(write, "litdata"))


def _sample(dataset: Any, index: int) -> dict[str, Any]:
    fields = dataset[index]
    return {
        str(place): field if isinstance(field, bytes | int) else np.asarray(field) for place, field in enumerate(fields)
    }


def _loaded(load: Load, stored: dict[str, Any]) -> Any:
    return load(tuple(stored[str(place)] for place in range(len(stored))))


# MosaicML Streaming: MDS shards.


def streaming_side(make: MakeDataset, batch_size: int, columns: dict[str, str], make_load: MakeLoad = whole) -> Side:
    def write(work: Work, folder: Path) -> None:
        import streaming

        with streaming.MDSWriter(out=str(folder), columns=columns) as out:
            dataset = make(work)
            for index in range(len(dataset)):
                values = (
                    int(field) if kind == "int" else field
                    for field, kind in zip(dataset[index], columns.values(), strict=True)
                )
                out.write(dict(zip(columns, values, strict=True)))

    def open_loader(work: Work) -> Any:
        import streaming

        load = make_load(work)

        class Samples(streaming.StreamingDataset):
            def __getitem__(self, index: int) -> Any:
                stored = super().__getitem__(index)
                return load(tuple(stored[name] for name in columns))

        # Its shared memory outlives a process that was killed; this is the documented way to begin afresh.
        streaming.base.util.clean_stale_shared_memory()
        dataset = Samples(local=str(work.folder / "streaming"), shuffle=True, batch_size=batch_size)
        return streaming.StreamingDataLoader(
            dataset, batch_size=batch_size, num_workers=NUM_WORKERS, persistent_workers=True
        )

    name = f"MosaicML Streaming, {NUM_WORKERS} workers, own shuffle"
    return Side(
        name=name,
        library="streaming",
        open=open_loader,
        imports=("benchmarks.torchvision_ops", "streaming", "streaming.base.util"),
        prepare=written(write, "streaming"),
    )


# Hugging Face datasets: an Arrow file, memory-mapped, in PyTorch's loader with a batched sampler.


def huggingface_side(make: MakeDataset, batch_size: int) -> Side:
    def write(work: Work, folder: Path) -> None:
        import datasets
        import pyarrow as pa

        dataset = make(work)
        blocks: dict[str, list[Any]] = {}
        for begin in range(0, len(dataset), 10_000):
            rows = [dataset[index] for index in range(begin, min(begin + 10_000, len(dataset)))]
            for place, field in enumerate(zip(*rows, strict=True)):
                values = np.stack(field)
                flat = pa.array(values.reshape(-1))
                column = pa.FixedSizeListArray.from_arrays(flat, values.shape[1]) if values.ndim > 1 else flat
                blocks.setdefault(f"field{place}", []).append(column)
        table = pa.table({name: pa.chunked_array(parts) for name, parts in blocks.items()})
        datasets.Dataset(table).save_to_disk(str(folder))

    def open_loader(work: Work) -> Any:
        import datasets
        import torch.utils.data as tud

        table = datasets.load_from_disk(str(work.folder / "huggingface")).with_format("arrow")
        sampler = tud.BatchSampler(tud.RandomSampler(table), batch_size, drop_last=False)
        return tud.DataLoader(table, sampler=sampler, batch_size=None, collate_fn=_in_torch)

    return Side(
        name="Hugging Face datasets, Arrow format, batched sampler in torch, no workers",
        library="datasets",
        open=open_loader,
        imports=("datasets", "torch.utils.data"),
        prepare=written(write, "huggingface"),
    )


def _in_torch(table: Any) -> tuple[Any, ...]:
    """Its numpy and torch formats go through the rows one by one; Arrow's own memory is a third of the time."""
    import torch

    fields = []
    for column in (chunks.combine_chunks() for chunks in table.columns):
        width = getattr(column.type, "list_size", None)
        field = column.flatten().to_numpy().reshape(-1, width) if width else column.to_numpy()
        # Tokens are stored as uint16 and delivered as int64; the others stay, as a copy, for Arrow's may not be written to.
        fields.append(torch.from_numpy(field.astype(np.int64) if field.dtype.kind == "u" else field.copy()))
    return tuple(fields)
