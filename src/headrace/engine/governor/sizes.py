"""What a batch weighs in memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["batch_bytes"]

_DEPTH = 4  # batches are nested two or three deep; deeper values weigh little


def batch_bytes(value: Any, depth: int = _DEPTH) -> int:
    """Returns the bytes of the arrays, tensors and texts in a batch; what it does not know, it takes for small."""
    num_bytes = getattr(value, "nbytes", None)
    if isinstance(num_bytes, int):
        return num_bytes
    if depth == 0 or isinstance(value, (str, bytes, bytearray)):
        return sys.getsizeof(value)
    if isinstance(value, Mapping):
        return sum(batch_bytes(part, depth - 1) for part in value.values())
    if isinstance(value, (list, tuple)):
        return sum(batch_bytes(part, depth - 1) for part in value)
    return sys.getsizeof(value)
