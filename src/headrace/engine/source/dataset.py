"""DatasetSource: anyone's map-style data set, unchanged. Torch is not imported; it is the methods that count."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.source.gather_dataset import gather_dataset, is_gathered
from headrace.engine.source.inspect_dataset import describe, path_of
from headrace.engine.source.numbered import NumberedRows
from headrace.errors import SourceError, Where

__all__ = ["DatasetSource"]


class DatasetSource(NumberedRows):
    """Reads a data set with `__len__` and `__getitem__`; ids are row numbers 0..N-1.

    Args:
        dataset: The data set. If it has `__getitems__`, as torch's rule is, whole batches are read through it.

    Raises:
        SourceError: its length is not a whole number >= 0, or asking for it fails.
    """

    runs_user_code = True

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        len(self)  # a length that lies in a telling way should tell before workers start

    def __len__(self) -> int:
        try:
            return len(self.dataset)
        except Exception as error:
            raise SourceError(
                f"len(dataset) of {type(self.dataset).__qualname__} fails: {type(error).__name__}: {error}",
                do="let __len__ return the number of samples, a whole number >= 0",
            ) from error

    @property
    def classes(self) -> Any:
        """The data set's own `classes`; None if it has none."""
        return getattr(self.dataset, "classes", None)

    @property
    def num_classes(self) -> int | None:
        """The data set's own `num_classes`, else the number of its `classes`; None if it has neither."""
        own = getattr(self.dataset, "num_classes", None)
        if isinstance(own, int):
            return own
        return len(self.classes) if isinstance(self.classes, Sized) else None

    @property
    def has_batched_read(self) -> bool:
        """True if the data set reads whole batches: it has a `__getitems__` (torch's rule) that can be called."""
        return callable(getattr(self.dataset, "__getitems__", None))

    @property
    def read_one(self) -> Callable[[int], Any]:
        """Returns what returns `dataset[index]` for an int, with no code of ours in between: it is called per sample."""
        return functools.partial(operator.getitem, self.dataset)

    def read_many(self, indices: Sequence[int]) -> Sequence[Any]:
        """Returns one record per index, in one call of `__getitems__` where there is one.

        Raises:
            SourceError: `__getitems__` returned another number of records than it was asked for.
        """
        rows = [operator.index(index) for index in indices]
        if not self.has_batched_read:
            return [self.dataset[row] for row in rows]
        records = self.dataset.__getitems__(rows)
        if not isinstance(records, Sized) or len(records) != len(rows):
            found = f"{len(records):,} records" if isinstance(records, Sized) else type(records).__name__
            raise SourceError(
                f"__getitems__ of {type(self.dataset).__qualname__} returned {found} for {len(rows):,} indices",
                where=Where(index=rows[0] if rows else None),
                do="return a list with one record per index, in the order of the indices",
            )
        return records  # type: ignore[return-value] # Sized and ordered is all that is asked of a foreign list

    @property
    def gathers(self) -> bool:
        """True for arrays, tensors, `TensorDataset`, Hugging Face's `Dataset`, a `Subset` of one: no code of a user's."""
        return is_gathered(self.dataset)

    def gather(self, rows: npt.NDArray[np.int64]) -> Any:
        """Returns the batch of some rows at once, see `gathering.Gathering`."""
        return gather_dataset(self.dataset, rows)

    def locate(self, index: int) -> str | None:
        """Returns the file of a row where the data set shows it in one of the usual ways; never raises."""
        return path_of(self.dataset, index)

    def fingerprint(self) -> str:
        """Returns class name and length, with what the data set or its wrappers say about its content.

        A `fingerprint()` method of the data set's own, or Hugging Face's `_fingerprint`, is used where there is one;
        the rows of a `Subset` count. Nothing is read.
        """
        return describe(self.dataset, len(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSource) and self.dataset is other.dataset

    def __hash__(self) -> int:
        return hash((DatasetSource, id(self.dataset)))

    def __repr__(self) -> str:
        return f"DatasetSource({type(self.dataset).__qualname__}, {len(self):,} samples)"
