"""One small picture of a sample, for pages only: it is data, and goes into no other form of the report."""

from __future__ import annotations

import dataclasses

from headrace.errors import SampleId

__all__ = ["Thumbnail"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnail:
    """One field of one sample as delivered, or why there is no picture of it."""

    sample_id: SampleId
    field: str | None = None
    png: bytes | None = None
    """The picture; None: see `note`."""
    note: str = ""
    """How values became brightness, or why there is no picture."""
