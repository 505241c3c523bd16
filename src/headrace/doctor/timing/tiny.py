"""A data set that costs nothing: what handing over alone takes. Imported only where torch is, for torch's class."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import IterableDataset, get_worker_info

__all__ = ["TinyRows", "TinyStream"]

ENDLESS = 2**40


class TinyRows:
    """Each row is the number 0, whatever is asked for."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: object) -> int:
        return 0


class TinyStream(IterableDataset[int]):
    """Numbers, shared out over the workers: a constant would look as if each worker delivered the same."""

    def __init__(self, size: int | None) -> None:
        """`size`: of all workers together; None: endless."""
        super().__init__()
        self._size = ENDLESS if size is None else size

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        place, of = (0, 1) if worker is None else (worker.id, worker.num_workers)
        yield from range(place, self._size, of)
