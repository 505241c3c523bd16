"""A setting of a loader: what is changed of it, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Literal

__all__ = ["AS_IT_IS", "Setting", "StartMethod"]

StartMethod = Literal["fork", "forkserver", "spawn"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is changed of a loader. None: left as its user set it."""

    num_workers: int | None = None
    prefetch_factor: int | None = None
    """Batches that each worker prepares ahead."""
    persistent_workers: bool | None = None
    pin_memory: bool | None = None
    start_method: StartMethod | None = None
    reads_batches: bool | None = None
    """True: the data set is asked for all rows of a batch at once (`dataset[[3, 1, 4]]`), and nothing is collated."""
    runner: Literal["threads", "processes"] | None = None
    """Of a headrace loader."""
    loader: Literal["headrace"] | None = None
    """`headrace`: its own loader in the place of torch's, with the same arguments."""

    @property
    def name(self) -> str:
        """What people call it: `as it is`, `num_workers=4, prefetch_factor=4`."""
        told = {"headrace.DataLoader": self.loader} if self.loader else {}
        told |= {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "loader"}
        parts = [
            key if key == "headrace.DataLoader" else f"{key}={value!r}"
            for key, value in told.items()
            if value is not None
        ]
        return ", ".join(parts) or "as it is"


AS_IT_IS = Setting()
"""Nothing is changed."""
