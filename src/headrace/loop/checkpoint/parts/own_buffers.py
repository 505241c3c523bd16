"""Buffers of a sharded model, which nobody keeps equal: running statistics are those of each rank's own batches."""

from __future__ import annotations

from typing import Any

from headrace.loop.checkpoint.parts.models import Models
from headrace.loop.checkpoint.parts.names import plain
from headrace.loop.checkpoint.shards import is_shared

__all__ = ["OwnBuffers"]


class OwnBuffers:
    """What each rank holds in the buffers of models that ranks share; of other models it saves nothing.

    DistributedDataParallel gives all ranks the buffers of rank 0 before each forward pass; FSDP2 does not.

    Args:
        models: The models.
        name: The part's name in the checkpoint.
    """

    is_per_rank = True

    def __init__(self, models: Models, name: str = "own_buffers") -> None:
        self.name = name
        self.models = models

    def state(self) -> dict[str, Any]:
        """Returns the buffers of models with parameters in pieces, by name."""
        return {
            plain(name, prefix): buffer
            for prefix, model in self.models.models.items()
            if any(map(is_shared, model.parameters()))
            for name, buffer in model.named_buffers()
            if not is_shared(buffer)
        }

    def load(self, state: Any) -> list[str]:
        """Copies the saved values into the buffers that are here."""
        import torch

        with torch.no_grad():
            for name, buffer in self.state().items():
                if name in state:
                    buffer.copy_(state[name])
        return []
