"""Batches on the device, copied one ahead on a stream of their own, so that copying hides behind computing.

    host batch ──pin──▶ copy on the side stream ──event──▶ the consumer's stream waits for the event, not the host

A host batch is let go only when its copy has ended: it may lie in a slot that is used again.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

from headrace.engine.transfer.leaves import is_tensor, map_leaves
from headrace.engine.transfer.pin import pin
from headrace.errors import ConfigurationError

__all__ = ["DeviceTransfer", "Normalize"]

InfoT = TypeVar("InfoT")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Normalize:
    """(x / scale - mean) / std per channel, computed on the device: uint8 travels, a quarter of float32's bytes.

    Args:
        field: Name or place of the field in the batch; None: the batch itself is the tensor.
        mean: One value per channel.
        std: One value per channel, none of them 0.
        scale: What uint8 values are divided by first. Default 255, which makes them 0..1.
        channel_axis: Axis of the channels in the batch. Default 1, as in (B, C, H, W).

    The result is float32.
    """

    field: str | int | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 255.0
    channel_axis: int = 1

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.mean:
            raise ConfigurationError(
                f"mean has {len(self.mean)} values and std has {len(self.std)}: give one of each per channel"
            )
        if 0 in self.std or self.scale == 0:
            raise ConfigurationError("std and scale divide, so they cannot be 0")

    def __call__(self, batch: Any) -> Any:
        """Returns the batch with its field normalised, on whatever device it lies."""
        if self.field is None:
            return self._normalised(batch)
        if isinstance(batch, dict):
            return batch | {self.field: self._normalised(batch[self.field])}
        parts = [self._normalised(part) if place == self.field else part for place, part in enumerate(batch)]
        return type(batch)(parts)

    def _normalised(self, tensor: Any) -> Any:
        import torch

        shape = [1] * tensor.ndim
        shape[self.channel_axis] = len(self.mean)
        # (x / scale - mean) / std as one multiply-add: x * factor + offset.
        std = torch.tensor(self.std, dtype=torch.float32)
        factor = (1.0 / (self.scale * std)).reshape(shape).to(tensor.device, non_blocking=True)
        offset = (-torch.tensor(self.mean, dtype=torch.float32) / std).reshape(shape).to(tensor.device)
        return torch.addcmul(offset, tensor.to(torch.float32), factor)


class DeviceTransfer:
    """Copies batches to a device, one ahead of the consumer. On the CPU they pass straight through.

    Args:
        device: A torch device or its name.
        normalize: Applied on the device after the copy; None: nothing.
    """

    def __init__(self, device: Any, *, normalize: Normalize | None = None) -> None:
        import torch

        self.device = torch.device(device)
        self.normalize = normalize

    def __call__(self, batches: Iterable[tuple[Any, InfoT]]) -> Generator[tuple[Any, InfoT], None, None]:
        """Yields (batch on the device, info) for each (batch, info)."""
        if self.device.type != "cuda":
            for batch, info in batches:
                yield self._finished(map_leaves(self._moved, batch)), info
            return
        yield from self._ahead(batches)

    def _moved(self, leaf: Any) -> Any:
        return leaf.to(self.device, non_blocking=True) if is_tensor(leaf) else leaf

    def _finished(self, batch: Any) -> Any:
        return batch if self.normalize is None else self.normalize(batch)

    def _ahead(self, batches: Iterable[tuple[Any, InfoT]]) -> Generator[tuple[Any, InfoT], None, None]:
        import torch

        side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call] # torch's own
        started: deque[tuple[Any, Any, InfoT, Any]] = deque()
        copying: deque[tuple[Any, Any]] = deque()  # host batches whose copy may still run
        for batch, info in batches:
            host = pin(batch)
            with torch.cuda.stream(side):
                moved = self._finished(map_leaves(self._moved, host))
                copied = torch.cuda.Event()  # type: ignore[no-untyped-call] # torch's own
                copied.record(side)
            started.append((moved, copied, info, host))
            if len(started) > 1:
                yield self._received(*started.popleft(), copying)
        while started:
            yield self._received(*started.popleft(), copying)
        for event, _ in copying:
            event.synchronize()

    def _received(
        self, moved: Any, copied: Any, info: InfoT, host: Any, copying: deque[tuple[Any, Any]]
    ) -> tuple[Any, InfoT]:
        """Makes the consumer's stream wait for the copy, and lets go of host batches whose copy has ended."""
        import torch

        current = torch.cuda.current_stream(self.device)
        current.wait_event(copied)
        # The memory was taken on the side stream; without this the allocator could give it away while the consumer's
        # stream still reads it.
        map_leaves(lambda leaf: leaf.record_stream(current) if is_tensor(leaf) and leaf.is_cuda else None, moved)
        copying.append((copied, host))
        while copying and copying[0][0].query():
            copying.popleft()
        return moved, info
