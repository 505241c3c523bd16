"""One pass over anything, sample by sample. Batches are split where it is plain how; errors do not end the pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.errors import SampleId

__all__ = ["Walk", "end_pass", "key_in", "split_batch"]

KEY_NAMES = ("__key__",)
"""WebDataset's name for the key of a sample; its users keep it when they convert their data."""


class Walk(Iterator[Any]):
    """Yields samples. `coming` names the next one before it is drawn, `key` and `path` the last one afterwards.

    Not a generator: after an exception it goes on, if what it walks does.
    """

    def __init__(
        self,
        items: Iterator[Any],
        *,
        splits: bool = False,
        batch_size: int | None = None,
        key_of: Callable[[Any], SampleId | None] | None = None,
        keys: Callable[[], tuple[SampleId | None, str | None]] | None = None,
    ) -> None:
        """Begins at the beginning.

        Args:
            items: One pass.
            splits: True if the items are batches.
            batch_size: Samples in each of them; None: not known.
            key_of: What names a sample by itself.
            keys: What knows (name, place) of the record that was read last, also if it then failed; None for what
                it does not know.
        """
        self._items = items
        self._splits = splits
        self._batch_size = batch_size
        self._key_of = key_of or key_in
        self._keys = keys or (lambda: (None, None))
        self._pending: deque[Any] = deque()
        self._is_from_batch = False
        self.position = 0
        """Samples drawn."""
        self.num_items = 0
        """Items drawn of the pass itself."""
        self.key: SampleId = "#0"
        self.path: str | None = None

    @property
    def coming(self) -> SampleId:
        """`#12`: the sample at place 12, counted from 0; `batch 3` if drawing it means to draw a batch."""
        return f"batch {self.num_items}" if self._splits and not self._pending else f"#{self.position}"

    def __next__(self) -> Any:
        self.key, self.path = self.coming, None
        sample = self._pending.popleft() if self._pending else self._draw()
        place = f"#{self.position}"
        self.position += 1
        self.key, self.path = place, None
        self._name_it()
        own = self._key_of(sample)
        if own is not None:
            self.key = own
        return sample

    def _draw(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration:
            raise
        except BaseException:
            self._name_it()
            self.position += (self._batch_size or 1) if self._splits else 1
            self.num_items += 1
            raise
        self.num_items += 1
        parts = split_batch(item, self._batch_size) if self._splits else None
        if not parts:
            return item
        self._pending.extend(parts[1:])
        return parts[0]

    def _name_it(self) -> None:
        key, self.path = self._keys()
        if key is not None:
            self.key = key

    def close(self) -> None:
        """Ends the pass, and the workers that torch may have started for it."""
        end_pass(self._items)


def end_pass(items: Any) -> None:
    """Ends a pass before its end, and the workers that torch may have started for it."""
    for name in ("_shutdown_workers", "close"):
        end = getattr(items, name, None)
        if callable(end):
            end()


def key_in(sample: Any) -> SampleId | None:
    """Returns the key that a sample carries under a usual name; None if there is none."""
    if isinstance(sample, Mapping):
        for name in KEY_NAMES:
            key = sample.get(name)
            if isinstance(key, bytes):
                key = key.decode(errors="replace")
            if isinstance(key, (str, int)) and not isinstance(key, bool):
                return key
    return None


def split_batch(batch: Any, batch_size: int | None = None, *, keeps_lists: bool = False) -> list[Any] | None:
    """Returns the samples of a batch; None where it is not plain which axis or list counts them.

    Plain is: every array has the same first dimension, and every list as many entries (or is itself made of such
    arrays). `batch_size` excludes what has more. Fields of a list become a tuple, as torch's joining made lists of tuples;
    `keeps_lists`: they were a list before, too.
    """
    if isinstance(batch, list) and batch and _is_unjoined(batch):
        return list(batch)
    size = _size(batch)
    if size is None or size == 0 or (batch_size is not None and size > batch_size):
        return None
    try:
        return [_part(batch, index, size, is_whole=True, keeps_lists=keeps_lists) for index in range(size)]
    except _NotPlain:
        return None


def _is_unjoined(batch: list[Any]) -> bool:
    """True for a list of samples that nobody has joined; a list of arrays or of lists is a batch of several fields."""
    return all(isinstance(part, (Mapping, tuple)) for part in batch) or not any(
        _shape(part) or isinstance(part, list) for part in batch
    )


class _NotPlain(Exception):
    """Something in the batch cannot be divided."""


def _shape(value: Any) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    try:
        return None if shape is None else tuple(int(size) for size in shape)
    except TypeError:
        return None


def _size(batch: Any) -> int | None:
    """The first dimension of an array that stands in the batch itself; if there is none, the length of its lists.

    Arrays inside lists do not count: in a list of images of several sizes, the first dimension is the channels.
    """
    shape = _shape(batch)
    if shape is not None:
        return shape[0] if shape else None
    parts = list(_values(batch))
    shapes = [shape for part in parts if (shape := _shape(part))]
    if shapes:
        return shapes[0][0]
    lengths = {len(part) for part in parts if isinstance(part, (list, tuple))}
    return lengths.pop() if len(lengths) == 1 else None


def _counts(value: Any, size: int) -> bool:
    """True for an array whose first dimension may be the batch's."""
    shape = _shape(value)
    return bool(shape) and shape is not None and shape[0] == size


def _values(batch: Any) -> Iterator[Any]:
    """What stands in the batch itself, the parts of dicts included."""
    inner = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else ()
    for part in inner:
        if isinstance(part, Mapping):
            yield from _values(part)
        else:
            yield part


def _part(value: Any, index: int, size: int, *, is_whole: bool = False, keeps_lists: bool = False) -> Any:
    shape = _shape(value)
    if shape is not None:
        if not shape or shape[0] != size:
            raise _NotPlain
        return value[index]
    if isinstance(value, Mapping):
        return {name: _part(inner, index, size, keeps_lists=keeps_lists) for name, inner in value.items()}
    if isinstance(value, (list, tuple)) and value:
        if not is_whole and len(value) == size and not all(_counts(inner, size) for inner in value):
            return value[index]
        parts = [_part(inner, index, size, keeps_lists=keeps_lists) for inner in value]
        if keeps_lists and isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    raise _NotPlain
