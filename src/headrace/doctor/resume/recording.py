"""Records in a training process which samples and which loss each optimizer step had.

A row is on disk before the next step begins, so that a run which is killed has told everything until then.
"""

from __future__ import annotations

import collections
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headrace.doctor.watch.taps import listen

__all__ = ["Recorder"]

_WALK = "_headrace_walk"
MOST_DIGESTED = 1 << 20
"""Bytes of a batch that enter its digest, where its samples are not numbered."""


class _Pass:
    """One walk through a loader."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.num_batches = 0
        self.drawn: collections.deque[Any] = collections.deque()


class Recorder:
    """Listens to loaders, `backward` and optimizers.

    Args:
        descriptor: File to append rows to, one JSON list for each optimizer step.
        stepped: Told, after each row, how many there are.
    """

    def __init__(self, descriptor: int, stepped: Callable[[int], None]) -> None:
        self._descriptor, self._stepped = descriptor, stepped
        self._num_rows = self._num_passes = self._depth = 0
        self._ids: list[Any] | None = None
        self._by_content = False
        self._place = (-1, 0)
        self._row: list[Any] = []
        self._tapped: set[type] = set()

    def install(self) -> None:
        """Sets the hooks, for the life of the process."""
        import torch
        from torch.optim import optimizer as hooks
        from torch.utils.data import dataloader

        from headrace.engine.loader import DataLoader

        listen(dataloader.DataLoader, "__iter__", before=lambda *_: self._tap(dataloader._BaseDataLoaderIter))
        self._tap(dataloader._BaseDataLoaderIter)
        self._wrap_own(DataLoader)
        listen(torch.autograd, "backward", before=self._goes_backward)
        hooks.register_optimizer_step_pre_hook(lambda *_: self._begins_step())
        hooks.register_optimizer_step_post_hook(self._ends_step)

    # Loaders of torch, and those derived from them.

    def _tap(self, kind: Any) -> None:
        """Listens to an iterator class and its subclasses, which may have been made since the last look."""
        if kind not in self._tapped:
            self._tapped.add(kind)
            names = vars(kind)
            if "_reset" in names:
                listen(kind, "_reset", before=lambda args, _: args[0].__dict__.pop(_WALK, None))
            if "_next_index" in names:
                listen(kind, "_next_index", after=self._drew)
            if "__next__" in names:
                listen(kind, "__next__", after=self._handed_over)
        for child in kind.__subclasses__():
            self._tap(child)

    def _pass_of(self, iterator: Any) -> _Pass:
        found = iterator.__dict__.get(_WALK)
        if found is None:
            found = iterator.__dict__[_WALK] = _Pass(self._num_passes)
            self._num_passes += 1
        return found  # type: ignore[no-any-return] # put there above

    def _drew(self, args: tuple[Any, ...], _: dict[str, Any], index: Any) -> None:
        drawn = self._pass_of(args[0]).drawn
        if not drawn or drawn[-1] is not index:  # a subclass calls the method of its base
            drawn.append(index)

    def _handed_over(self, args: tuple[Any, ...], _: dict[str, Any], batch: Any) -> None:
        one = self._pass_of(args[0])
        index = one.drawn.popleft() if one.drawn else None
        ids = index if isinstance(index, (list, tuple)) else [index]
        self._note(_numbers(ids), batch, one)

    # headrace's own.

    def _wrap_own(self, loader: Any) -> None:
        original = loader.__iter__

        def walked(this: Any) -> Iterator[Any]:
            one = _Pass(self._num_passes)
            self._num_passes += 1
            for batch in original(this):
                self._note(_numbers(this.last.sample_ids), batch, one)
                yield batch

        loader.__iter__ = walked

    def _note(self, ids: list[Any] | None, batch: Any, one: _Pass) -> None:
        self._by_content = ids is None
        self._ids = [_digest(batch)] if ids is None else ids
        self._place = (one.number, one.num_batches)
        one.num_batches += 1

    # Training.

    def _goes_backward(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        root = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
        loss = root.item() if root.numel() == 1 else None
        self._row.append([self._ids, loss, *self._place, self._by_content])

    def _begins_step(self) -> None:
        self._depth += 1

    def _ends_step(self, *_: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        os.write(self._descriptor, (json.dumps(self._row) + "\n").encode())
        self._row = []
        self._num_rows += 1
        self._stepped(self._num_rows)  # may end the process, or run the user's own handler of a signal


def _numbers(ids: Iterable[Any]) -> list[Any] | None:
    """Sample numbers as JSON takes them; None if they are none, as of a data set that is only walked through."""
    found: list[Any] = []
    for one in ids:
        if not isinstance(one, str) and not hasattr(one, "__index__"):
            return None
        found.append(one if isinstance(one, str) else int(one))
    return found


def _digest(batch: Any) -> int:
    """A number that changes with the content of a batch."""
    digest = 0
    for part in _leaves(batch):
        data = part.detach().cpu().contiguous().numpy() if hasattr(part, "detach") else part
        raw = data.tobytes()[:MOST_DIGESTED] if hasattr(data, "tobytes") else repr(data).encode()
        digest = zlib.crc32(raw, digest)
    return digest


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and not hasattr(value, "dtype"):
        for part in value:
            yield from _leaves(part)
    else:
        yield value
