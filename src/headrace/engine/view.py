"""A loader seen through a conversion: on a device, or in another framework's arrays; same order, same state."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Protocol

from headrace.engine.batch import BatchInfo, attach
from headrace.engine.order.cursor import Cursor

__all__ = ["LoaderView", "each"]

Stream = Iterable[tuple[Any, BatchInfo]]


class _Loader(Protocol):
    """What a view needs of a loader: its public door."""

    @property
    def last(self) -> BatchInfo: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any] | Cursor) -> None: ...


def each(convert: Callable[[Any], Any]) -> Callable[[Stream], Iterator[tuple[Any, BatchInfo]]]:
    """Returns a conversion of streams from a conversion of one batch."""
    return lambda stream: ((convert(batch), info) for batch, info in stream)


class LoaderView:
    """Yields a loader's batches, converted. Everything else (ledger, quarantine, stats, ...) is the loader's own.

    A conversion may read ahead, as a copy to a device does. So the view stands where the batch stands that *it* handed
    over last: `state_dict()` and `last` are right in front of look-ahead as well.
    """

    def __init__(self, loader: _Loader, convert: Callable[[Stream], Iterator[tuple[Any, BatchInfo]]]) -> None:
        self._loader = loader
        self._convert = convert
        self._last: BatchInfo | None = None

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._last = None
        return self._converted(iter(self._loader))

    def _converted(self, batches: Iterator[Any]) -> Generator[Any, None, None]:
        # The iterator is made before the first batch is asked for: which epoch it is, is settled at `iter()`.
        converted = self._convert((batch, self._loader.last) for batch in batches)
        try:
            for batch, info in converted:
                self._last = info
                yield attach(batch, info)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    @property
    def last(self) -> BatchInfo:
        """Identity of the batch that the view handed over last."""
        return self._loader.last if self._last is None else self._last

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the batch that the view handed over last."""
        return self._loader.state_dict() if self._last is None else self._last.cursor.state_dict()

    def load_state_dict(self, state: Mapping[str, Any] | Cursor) -> None:
        """Makes the next `iter(view)` go on from a saved state."""
        self._last = None
        self._loader.load_state_dict(state)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
