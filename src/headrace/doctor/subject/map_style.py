"""A data set with row numbers and without a loader: torch's, Hugging Face's, a plan, a list, any __getitem__ and __len__."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.doctor.subject.kind import Kind
from headrace.doctor.subject.torch_loader import NO_LOADER, Rows

__all__ = ["MapStyle"]


class MapStyle(Kind):
    """Rows 0 to N-1."""

    is_iterable = False

    @classmethod
    def holds(cls, target: Any) -> bool:
        return hasattr(target, "__getitem__") and hasattr(target, "__len__")

    @property
    def cannot(self) -> dict[str, str]:
        return {"workers": NO_LOADER}

    def epoch(self) -> Iterator[Any]:
        return Rows(self.target, iter(range(len(self.target))))
