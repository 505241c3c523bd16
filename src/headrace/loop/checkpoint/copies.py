"""Copies of states in main memory: what is written, or put back, while the training goes on with the original."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.loop.checkpoint import tree
from headrace.loop.checkpoint.shards import Piece

if TYPE_CHECKING:
    import torch

__all__ = ["Copier", "copied"]


def copied(value: Any) -> Any:
    """Returns a nested value as it is now, apart from the original: its tensors in main memory, the rest made anew.

    Of a tensor that ranks hold in pieces, this rank's is copied: it comes as a `shards.Piece`.

    Raises:
        CheckpointError: something in it is no data.
    """
    skeleton, tensors = tree.split(value, "value")
    return tree.join(skeleton, Copier().copied(tensors))


class Copier:
    """Copies tensors into memory that it keeps: the second copy of a run needs no new pages, which cost more than the bytes.

    Copies are valid until the next ones are made.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, list[torch.Tensor]] = {}
        """Memory by shape, strides, type and whether it is pinned."""

    def copied(self, tensors: Mapping[str, torch.Tensor | Piece]) -> dict[str, torch.Tensor | Piece]:
        """Returns the tensors' copies, in the memory of those before where they fit."""
        import torch

        free, self._kept = self._kept, {}
        made: dict[str, torch.Tensor | Piece] = {}
        for name, one in tensors.items():
            tensor = one.local if isinstance(one, Piece) else one
            # From a device copies go to pinned memory, where they need not wait for each other.
            form = (tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_cuda)
            fitting = free.get(form)
            copy = _copy_into(fitting.pop() if fitting else None, tensor)
            made[name] = dataclasses.replace(one, local=copy) if isinstance(one, Piece) else copy
            self._kept.setdefault(form, []).append(copy)
        if any(form[-1] for form in self._kept):
            torch.cuda.synchronize()
        return made


def _copy_into(buffer: torch.Tensor | None, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's copy in main memory: in the buffer, or in new memory of its form."""
    import torch

    if buffer is None:
        buffer = torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)
        if buffer.stride() != tensor.stride():  # with gaps, or over itself: a form that nothing new has
            return tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()
    return buffer.copy_(tensor, non_blocking=tensor.is_cuda)
