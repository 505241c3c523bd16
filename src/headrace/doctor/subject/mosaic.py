"""MosaicML's StreamingDataset: a torch stream that shares its samples out over ranks and workers by shared memory."""

from __future__ import annotations

from typing import Any

from headrace.doctor.subject.looking import descends_from
from headrace.doctor.subject.torch_loader import TorchStream

__all__ = ["MosaicStream"]


class MosaicStream(TorchStream):
    """Can be walked like any stream, but not in this process and then in its workers."""

    @classmethod
    def holds(cls, target: Any) -> bool:
        return super().holds(target) and descends_from(target, "streaming", "StreamingDataset")

    @property
    def cannot(self) -> dict[str, str]:
        return super().cannot | {
            "streams": "a StreamingDataset that was walked in one process cannot be walked by workers of it as well"
        }
