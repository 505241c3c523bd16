"""`torchdata.nodes`: a Loader, or the last node of a chain.

torchdata's other loader, StatefulDataLoader, is a torch DataLoader.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.subject.kind import Kind
from headrace.doctor.subject.looking import descends_from
from headrace.doctor.subject.torch_loader import STREAM
from headrace.doctor.subject.walking import Walk

__all__ = ["TorchdataNodes"]

_MAX_NODES = 64


class TorchdataNodes(Kind):
    """A chain of nodes. Samples are taken below the Batcher, and joined by what is mapped over the batches."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self._root = target.root if descends_from(target, "torchdata", "Loader") else target
        chain = _chain(self._root)
        place = next((i for i, node in enumerate(chain) if type(node).__name__ == "Batcher"), None)
        self._batcher = None if place is None else chain[place]
        if self._batcher is not None and place is not None:
            self.is_batched = True
            self.batch_size, self.drop_last = int(self._batcher.batch_size), bool(self._batcher.drop_last)
            functions = [node.map_fn for node in reversed(chain[:place]) if callable(getattr(node, "map_fn", None))]
            self.joins_apart = _composed(functions)
        self.num_workers = max((int(getattr(node, "num_workers", 0) or 0) for node in chain), default=0)

    @classmethod
    def holds(cls, target: Any) -> bool:
        return descends_from(target, "torchdata.nodes", "Loader", "BaseNode")

    @property
    def cannot(self) -> dict[str, str]:
        return {
            "index": STREAM,
            "workers": "torchdata nodes have a number of workers each, and none for the whole chain",
            "streams": "torchdata nodes read their source in one process and share nothing out",
        } | ({} if self.is_batched else {"join": "there is no Batcher among the nodes: what comes out is not joined"})

    @property
    def num_samples(self) -> int | None:
        return None

    @property
    def num_batches(self) -> int | None:
        return None

    def epoch(self) -> Iterator[Any]:
        return _walk(self.target)

    def samples(self) -> Walk:
        source = self._root if self._batcher is None else self._batcher.source
        return Walk(_walk(_inline(source)), key_of=self.key_of)


def _chain(node: Any) -> list[Any]:
    """The nodes from the last to the first, as long as each has one source."""
    chain: list[Any] = []
    while node is not None and len(chain) < _MAX_NODES:
        chain.append(node)
        node = getattr(node, "source", None)
    return chain


def _composed(functions: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """What is mapped over a batch, one after the other; a batch that nothing is mapped over stays a list."""
    if len(functions) == 1:
        return functions[0]

    def join(samples: list[Any]) -> Any:
        value: Any = samples
        for function in functions:
            value = function(value)
        return value

    return join if functions else list


def _walk(target: Any) -> Iterator[Any]:
    """A fresh pass; a bare node is reset by the Loader that its library made for that."""
    if hasattr(type(target), "__next__"):
        loader: Any = sys.modules["torchdata.nodes"].Loader
        target = loader(target)
    return iter(target)


def _inline(node: Any) -> Any:
    """The same chain without threads and worker processes of its own."""
    if type(node).__name__ in {"Prefetcher", "PinMemory"}:
        return _inline(node.source)
    twin = copy.copy(node)
    if isinstance(getattr(twin, "num_workers", None), int):
        twin.num_workers = 0
    if getattr(twin, "source", None) is not None:
        twin.source = _inline(twin.source)
    return twin
