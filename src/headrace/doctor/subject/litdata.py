"""LitData's StreamingDataLoader: torch's, with the user's collate function inside one of its own."""

from __future__ import annotations

from typing import Any

from headrace.doctor.subject.kind import Kind
from headrace.doctor.subject.looking import attribute, descends_from
from headrace.doctor.subject.torch_loader import TorchLoader

__all__ = ["LitDataLoader"]


class LitDataLoader(TorchLoader):
    """Joins as the function that the user gave does."""

    def __init__(self, target: Any, inner: Kind | None) -> None:
        super().__init__(target, inner)
        joins = attribute(target.collate_fn, "collate_fn")
        if callable(joins):
            self.joins_apart = joins

    @classmethod
    def holds(cls, target: Any) -> bool:
        return descends_from(target, "litdata", "StreamingDataLoader")
