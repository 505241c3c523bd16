"""Pinned (page-locked) host memory, from which a copy to the device can overlap with computing."""

from __future__ import annotations

import functools
from typing import Any

from headrace.engine.transfer.leaves import map_leaves

__all__ = ["pin"]


@functools.cache
def _has_device() -> bool:
    import torch

    return torch.cuda.is_available()


def pin(batch: Any) -> Any:
    """Returns the batch with its tensors in pinned memory, so that `tensor.to(device, non_blocking=True)` overlaps.

    Goes through mappings, lists, tuples, named tuples and dataclasses, and calls the `pin_memory()` method of anything
    that has one, the batch itself first, as torch does. Without a CUDA device the batch is returned as it is.

    Cost: one copy of the batch into freshly page-locked memory.
    """
    return _pinned(batch) if _has_device() else batch


def _pinned(batch: Any) -> Any:
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    return map_leaves(lambda leaf: leaf.pin_memory() if hasattr(leaf, "pin_memory") else leaf, batch)
