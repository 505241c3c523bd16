"""The user's own torch DataLoader again, with one thing changed and everything else kept.

A copy and not a new construction, so that subclasses keep what their constructors made, and so that sampler, generator,
worker_init_fn, start method and whatever else was set are the user's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

__all__ = ["RecordedSampler", "rebuild"]

DEFAULT_PREFETCH = 2
"""Torch's own default for loaders with workers."""


def rebuild(loader: Any, **changes: Any) -> Any:
    """Returns a copy of a torch DataLoader with attributes changed; the loader itself is left as it is.

    Args:
        loader: A `torch.utils.data.DataLoader` or a subclass of it.
        changes: Attributes under torch's names: `num_workers`, `collate_fn`, `persistent_workers`, `batch_sampler`,
            `sampler`, `dataset`, `multiprocessing_context`, ... What does not fit beside them follows torch's rules:
            without workers there is no timeout, no prefetching and nothing persistent. `pin_memory` is switched off
            unless it is among them.

    The copy shares data set, sampler and generators with the loader: walking through it draws from them.
    """
    twin = copy.copy(loader)
    state = twin.__dict__
    context = changes.pop("multiprocessing_context", None)
    state.update(changes)
    state["_iterator"] = None  # persistent workers belong to the loader that started them
    state["pin_memory"] = changes.get("pin_memory", False)  # a thread of its own, and no part of the data
    if context is not None:
        twin.multiprocessing_context = context
    if state["num_workers"] == 0:
        state.update(timeout=0, prefetch_factor=None, persistent_workers=False)
    elif state.get("prefetch_factor") is None:
        state["prefetch_factor"] = DEFAULT_PREFETCH
    return twin


class RecordedSampler:
    """Stands for a sampler or batch sampler, and keeps what it yielded: in a list of its own, in order."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.yielded: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for drawn in self._sampler:
            self.yielded.append(list(drawn) if isinstance(drawn, (list, tuple)) else drawn)
            yield drawn

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)
