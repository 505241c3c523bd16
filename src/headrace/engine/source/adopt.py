"""Takes in whatever people have: a source as it is, a map-style data set, a table; or a refusal that says what is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.engine.source.dataset import DatasetSource
from headrace.engine.source.table import TableSource, is_table
from headrace.errors import ConfigurationError
from headrace.protocols import Source

__all__ = ["adopt"]


def adopt(data: Any) -> Source:
    """Returns the source that reads `data`.

    Raises:
        ConfigurationError: it cannot be asked for its length and for record i.
    """
    refusal = _refusal(data)
    if refusal is not None:
        raise refusal
    if is_table(data):
        return TableSource(data)
    return data if isinstance(data, Source) else DatasetSource(data)


def _refusal(data: Any) -> ConfigurationError | None:
    """The error for something that cannot be read by row number; None if it can."""
    kind = type(data).__qualname__
    needed = "a data set needs __len__() and __getitem__(index) with index 0..N-1"
    if isinstance(data, type):
        return ConfigurationError(f"{data.__qualname__} is a class, not a data set", do=f"{data.__qualname__}(...)")
    if isinstance(data, Source) or is_table(data):
        return None
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        do = [
            f"headrace.folder({data!r})    # files in class folders",
            f"headrace.table({data!r})    # Parquet or Arrow",
        ]
        return ConfigurationError(f"a path is not a data set: {data!r}", do=do)
    if isinstance(data, Mapping):
        return ConfigurationError(
            f"a {kind} is read by key, not by row number; its keys: {', '.join(map(repr, list(data)[:8]))}",
            why=needed,
            do=["headrace.arrays(data)    # if its values are arrays of equal length", "data['train']    # a split"],
        )
    if hasattr(data, "iloc"):
        return ConfigurationError(
            f"a {kind} is read by column, not by row number",
            why=needed,
            do="headrace.arrays({name: data[name].to_numpy() for name in data.columns})",
        )
    if _is_stream(data):
        return ConfigurationError(
            f"{kind} is a stream: it has no row numbers",
            why=needed,
            do="headrace.DataLoader(dataset)    # takes a torch IterableDataset as it is",
        )
    missing = [name for name in ("__len__", "__getitem__") if not hasattr(data, name)]
    if missing:
        inside = "dataset" if hasattr(data, "dataset") else None
        return ConfigurationError(
            f"{kind} has no {' and no '.join(missing)}",
            why=needed,
            do=f"give its data set: .{inside}" if inside else "add what is missing, or use folder(...) or arrays(...)",
        )
    return None


def _is_stream(data: Any) -> bool:
    """True for a torch IterableDataset, which inherits a `__getitem__` that does not work, and for bare iterables."""
    torch_data = sys.modules.get("torch.utils.data")  # whoever holds one has loaded it
    if torch_data is not None and isinstance(data, torch_data.IterableDataset):
        return True
    return isinstance(data, Iterable) and not hasattr(data, "__getitem__") and not hasattr(data, "dataset")
