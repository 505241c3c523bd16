"""Batches as other frameworks' arrays, without a copy where the framework allows it."""

from __future__ import annotations

from typing import Any

from headrace.engine.transfer.leaves import is_tensor, map_leaves
from headrace.errors import MissingExtra

__all__ = ["to_jax", "to_numpy"]


def to_numpy(batch: Any) -> Any:
    """Returns the batch with its CPU tensors as numpy arrays over the same memory.

    numpy has no bfloat16: such a tensor is widened to float32, which copies it.
    """
    return map_leaves(_as_numpy, batch)


def _as_numpy(leaf: Any) -> Any:
    if not is_tensor(leaf):
        return leaf
    if str(leaf.dtype) == "torch.bfloat16":
        leaf = leaf.float()
    return leaf.detach().numpy()


def to_jax(batch: Any) -> Any:
    """Returns the batch with its tensors as JAX arrays, handed over by DLPack.

    JAX shares the memory where the layout allows it, and holds the tensor alive for as long as its array lives. Without
    64-bit types enabled in JAX, int64 and float64 become 32-bit, which copies them.

    Raises:
        MissingExtra: JAX is not installed.
    """
    try:
        import jax.numpy
    except ImportError as error:
        raise MissingExtra("JAX is needed for to_jax, and not installed", do="pip install jax") from error

    def as_jax(leaf: Any) -> Any:
        if not is_tensor(leaf):
            return leaf
        # Booleans and non-contiguous tensors have no DLPack that JAX takes: those go by numpy.
        if str(leaf.dtype) == "torch.bool" or not leaf.is_contiguous():
            return jax.numpy.asarray(leaf.numpy())
        return jax.numpy.from_dlpack(leaf)

    return map_leaves(as_jax, batch)
