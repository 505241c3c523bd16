"""Values to bytes and back, without copying arrays: pickle protocol 5 with buffers out of band.

Tensors travel as raw buffers. Neither of torch's own ways fits: its multiprocessing reductions put each storage into
shared memory and pass a descriptor (they leak descriptors with batches that are kept, and fill /dev/shm), and its
plain pickle writes an archive per storage.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.engine.run.wire import Buffer, Part

if TYPE_CHECKING:
    import torch

__all__ = ["pack", "reduce_tensor", "unpack"]


def pack(value: Any) -> list[Buffer]:
    """Returns the pickle of a value, followed by its large buffers, which are views into `value`.

    Numpy arrays and torch tensors (CPU, strided, any dtype) become buffers; other tensors go by their own reduction.

    Raises:
        Exception: whatever pickling a part of the value raises.
    """
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(value)
    return [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]


def unpack(parts: Sequence[Part]) -> Any:
    """Returns the value; its arrays and tensors own their memory and are writable. Cost: no copy of buffers."""
    return pickle.loads(parts[0], buffers=parts[1:])


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        return reduce_tensor(value)


def reduce_tensor(value: Any) -> Any:
    """Returns how to pickle a plain tensor as one raw buffer; NotImplemented for everything else.

    Cost: a copy only if the tensor has gaps or overlaps, or is lazily conjugated or negated.
    """
    # A value can only be a tensor if someone has imported torch; a worker that needs no torch must not load it.
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not getattr(torch, "Tensor", None):
        return NotImplemented
    if value.device.type != "cpu" or value.layout is not torch.strided or value.requires_grad or value.is_quantized:
        return NotImplemented
    plain = value.resolve_conj().resolve_neg()
    # Dimensions from the longest stride to the shortest: in that order a tensor without gaps is one run of memory,
    # whatever its layout (channels last, transposed), and keeps that layout on the other side.
    if not plain.is_contiguous():
        by_stride = sorted(range(plain.dim()), key=plain.stride, reverse=True)
        if not plain.permute(by_stride).is_contiguous():
            plain = plain.contiguous()
    # Not reshape(-1), which keeps an odd stride of a tensor with one element or none, and that cannot be seen as bytes.
    raw = plain.as_strided((plain.numel(),), (1,)).view(torch.uint8).numpy()
    return _rebuild_tensor, (pickle.PickleBuffer(raw), plain.dtype, tuple(plain.shape), plain.stride())


def _rebuild_tensor(raw: Any, dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    """Makes the tensor whose memory is `raw`."""
    import torch

    if len(raw) == 0:  # torch.frombuffer refuses empty buffers
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype).as_strided(shape, stride)
