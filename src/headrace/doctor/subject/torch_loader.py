"""torch's DataLoader and its subclasses: torchdata's StatefulDataLoader, Mosaic's, PyTorch Geometric's, accelerate's."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from typing import Any

from headrace.doctor.subject.kind import Collate, Kind
from headrace.doctor.subject.looking import attribute, is_instance, is_torch, length
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.subject.walking import Walk

__all__ = ["NO_LOADER", "STREAM", "Rows", "TorchLoader", "TorchStream", "worker_stream"]

STREAM = "the data set is a stream: its samples cannot be asked for one by one, they are taken in order from a pass"


NO_LOADER = "it is a data set without a loader, so there are no workers whose number could be changed"


class TorchStream(Kind):
    """A torch IterableDataset without a loader; streams of other libraries that descend from it are among them."""

    @classmethod
    def holds(cls, target: Any) -> bool:
        return is_instance(target, "torch.utils.data", "IterableDataset")

    @property
    def cannot(self) -> dict[str, str]:
        return {"index": STREAM, "workers": NO_LOADER}


class TorchLoader(Kind):
    """A torch DataLoader. What it draws from may itself be a stream of another library."""

    def __init__(self, target: Any, inner: Kind | None) -> None:
        """Looks at the loader.

        Args:
            target: The loader.
            inner: The stream that it draws from; None: a data set with row numbers.
        """
        super().__init__(target)
        self.loader, self.dataset = target, target.dataset
        self.inner = inner
        self.is_iterable = inner is not None
        size = attribute(target, "batch_size")
        self.batch_size = size if isinstance(size, int) else None
        self.drop_last = bool(attribute(target, "drop_last"))
        count = attribute(target, "num_workers")
        self.num_workers = count if isinstance(count, int) else 0
        self.joins_samples = self.batch_size is not None or attribute(target, "batch_sampler") is not None
        self.is_batched = self.joins_samples or (inner is not None and inner.is_batched)
        if not self.joins_samples and inner is not None:
            self.joins_apart = inner.joins_apart
            self.batch_size, self.drop_last = inner.batch_size, inner.drop_last

    @classmethod
    def holds(cls, target: Any) -> bool:
        return is_torch(target)

    @property
    def cannot(self) -> dict[str, str]:
        reasons = {"index": STREAM} if self.is_iterable else {}
        if self.inner is not None and "streams" in self.inner.cannot:
            reasons["streams"] = self.inner.cannot["streams"]
        if not self.joins_samples and self.joins_apart is None:
            reasons["join"] = (
                "the loader joins nothing (batch_size=None): it hands over what the data set yields"
                if self.inner is None or not self.inner.is_batched
                else self.inner.cannot.get("join", "the data set yields finished batches")
            )
        return reasons

    @property
    def num_samples(self) -> int | None:
        return self.inner.num_samples if self.inner is not None else length(self.dataset)

    @property
    def num_batches(self) -> int | None:
        return length(self.loader)

    def samples(self) -> Walk:
        if self.inner is not None:
            return self.inner.samples()
        return Walk(Rows(self.dataset, self._rows()), key_of=self.key_of)

    @property
    def unbatched(self) -> Any:
        return self.dataset if self.inner is None else self.inner.unbatched

    def _rows(self) -> Iterator[Any]:
        """Row numbers in the loader's own order."""
        batches = attribute(self.loader, "batch_sampler")
        if batches is None:
            yield from self.loader.sampler
            return
        for batch in batches:
            yield from batch

    def with_workers(self, num_workers: int, **changes: Any) -> Any:
        """Returns a copy by `rebuild`; `changes` as there. A wrapper of accelerate keeps wrapping the copy."""
        base = vars(self.loader).get("base_dataloader")
        if base is None:
            return rebuild(self.loader, num_workers=num_workers, **changes)
        twin = copy.copy(self.loader)
        twin.__dict__["base_dataloader"] = rebuild(base, num_workers=num_workers, **changes)
        return twin


class Rows(Iterator[Any]):
    """Samples by row number; one that fails does not end the pass."""

    def __init__(self, dataset: Any, rows: Iterator[Any]) -> None:
        self._dataset, self._rows = dataset, rows

    def __next__(self) -> Any:
        return self._dataset[next(self._rows)]


def worker_stream(dataset: Any, loader: Any, num_workers: int, tag: Collate) -> Iterator[Any]:
    """Walks an iterable data set in workers with the loader's settings; yields `tag(sample)`, made in the worker."""
    options: dict[str, Any] = {}
    if num_workers and getattr(loader, "num_workers", 0):
        names = ("worker_init_fn", "multiprocessing_context", "prefetch_factor")
        options = {name: getattr(loader, name, None) for name in names}
    torch_data = importlib.import_module("torch.utils.data")
    return iter(torch_data.DataLoader(dataset, batch_size=None, collate_fn=tag, num_workers=num_workers, **options))
