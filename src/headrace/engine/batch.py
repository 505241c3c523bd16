"""Identity on batches: the same dict, list or tuple that collate returned, which also carries who is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.order.cursor import Cursor
from headrace.errors import SampleId

__all__ = ["BatchInfo", "DictBatch", "ListBatch", "TupleBatch", "WholeOrder", "attach", "is_whole", "leading_size"]


class WholeOrder:
    """Stands in a delivery for the identities of all samples of its order, none missing or replaced: only their number.

    Workers need no identities for a batch without faults, and the main process can look them up when asked for.
    """

    __slots__ = ("num_samples",)

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples


def is_whole(sample_ids: object) -> bool:
    """True if the identities in a delivery are those of the order's own rows, all of them."""
    return type(sample_ids) is WholeOrder


class BatchInfo:
    """Who is in a batch, and where the loader stands after it. K samples.

    All but `epoch` and `step` is made when it is first asked for: most loops never ask, and small batches are cheap.

    Args:
        epoch: Number of the pass.
        step: Number of the batch.
        make: Called with the name of another attribute, once, when it is first asked for; returns its value.
        others: The other attributes, if they are there already.
    """

    __slots__ = ("_make", "cursor", "epoch", "is_pad", "is_replaced", "positions", "sample_ids", "step")

    epoch: int
    """Number of the pass, from 0."""
    step: int
    """Number of the global batch within the pass, from 0; after a resume it counts on from the saved place's batch 0."""
    sample_ids: tuple[SampleId, ...]
    """(K,) identities, in the order of the rows."""
    cursor: Cursor
    """The state after this batch: save it, and a wrapper that reads ahead still resumes exactly."""
    positions: npt.NDArray[np.int64]
    """(K,) positions within the epoch."""
    is_pad: npt.NDArray[np.bool_]
    """(K,) True for repeats that only fill the batch up; leave them out of an evaluation."""
    is_replaced: npt.NDArray[np.bool_]
    """(K,) True where another sample stands in for one that could not be loaded."""

    def __init__(self, *, epoch: int, step: int, make: Callable[[str], Any] | None = None, **others: Any) -> None:
        self.epoch = epoch
        self.step = step
        self._make = make
        for name, value in others.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there yet.
        if name not in _MADE_LATER or self._make is None:
            raise AttributeError(f"BatchInfo has no attribute {name!r}")
        value = self._make(name)
        setattr(self, name, value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return _info_of, ({name: getattr(self, name) for name in ("epoch", "step", *_MADE_LATER)},)

    def __repr__(self) -> str:
        return f"BatchInfo({', '.join(f'{name}={getattr(self, name)!r}' for name in ('epoch', 'step', *_MADE_LATER))})"


_MADE_LATER = ("sample_ids", "cursor", "positions", "is_pad", "is_replaced")


def _info_of(fields: dict[str, Any]) -> BatchInfo:
    return BatchInfo(**fields)


class _Identified:
    """What the three kinds of batch share; `info` is None on copies that other code makes of a batch."""

    info: BatchInfo | None = None

    @property
    def sample_ids(self) -> tuple[SampleId, ...]:
        """Identities of the rows."""
        return self._known().sample_ids

    @property
    def cursor(self) -> Cursor:
        """State of the loader after this batch."""
        return self._known().cursor

    def _known(self) -> BatchInfo:
        if self.info is None:
            raise AttributeError(
                "this is a copy of a batch, made by other code, and copies carry no identity; "
                "take it from the loader: loader.last.sample_ids"
            )
        return self.info


class DictBatch(_Identified, dict[Any, Any]):
    """A dict that also has `sample_ids`, `cursor` and `info`."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A plain dict on the other side: identity does not survive a copy, see `info`.
        return dict, (dict(self),)


class ListBatch(_Identified, list[Any]):
    """A list that also has `sample_ids`, `cursor` and `info`."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class TupleBatch(_Identified, tuple[Any, ...]):  # noqa: SLOT001 - it is there to carry one more attribute
    """A tuple that also has `sample_ids`, `cursor` and `info`."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return tuple, (tuple(self),)


def attach(batch: Any, info: BatchInfo) -> Any:
    """Returns the batch with its identity, if its type is exactly dict, list or tuple; anything else as it is.

    Named tuples, dataclasses, tensors and a user's own classes are not touched: `loader.last` has their identity.
    """
    kind = _KINDS.get(type(batch))
    if kind is None:
        return batch
    identified = kind(batch)
    identified.info = info
    return identified


_KINDS: dict[type, Callable[[Any], DictBatch | ListBatch | TupleBatch]] = {
    dict: DictBatch,
    list: ListBatch,
    tuple: TupleBatch,
}


def leading_size(batch: Any) -> int | None:
    """Returns the number of rows of a batch: the leading size of its first tensor, array or list; None if unknown."""
    if isinstance(batch, Mapping):
        return next((size for size in map(leading_size, batch.values()) if size is not None), None)
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    if isinstance(batch, (list, tuple)) and batch:
        inner = next((size for size in map(leading_size, batch) if size is not None), None)
        return len(batch) if inner is None else inner
    return None
