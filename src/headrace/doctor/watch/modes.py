"""Which modules behave differently in training and in evaluation mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["batch_norms_of", "mode_sensitive_of"]

_RANDOM_OR_NORM = re.compile(r"drop|noise|rand|normal|batch_norm|bernoulli", re.IGNORECASE)


def batch_norms_of(module: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, module) of the batch norms that take their statistics from the batch while training."""
    from torch.nn.modules.batchnorm import _BatchNorm

    for name, part in module.named_modules():
        if isinstance(part, _BatchNorm):
            yield name or "itself", part


def mode_sensitive_of(module: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, module) of the parts whose results change with the mode: dropout, batch norm, the user's own."""
    for name, part in module.named_modules():
        if _is_sensitive(part):
            yield name or "itself", part


def _is_sensitive(part: Any) -> bool:
    from torch import nn
    from torch.nn.modules.batchnorm import _NormBase
    from torch.nn.modules.dropout import _DropoutNd

    if isinstance(part, _DropoutNd):
        return part.p > 0
    if isinstance(part, _NormBase):
        return bool(part.track_running_stats)
    if isinstance(part, nn.RNNBase):
        return bool(part.dropout and part.num_layers > 1)
    if isinstance(part, nn.MultiheadAttention):
        return bool(part.dropout)
    if isinstance(part, nn.RReLU):
        return True
    if type(part).__module__.startswith("torch."):
        return False
    # A forward of the user's or a library's own that asks for the mode. Some ask only for what to return, such as
    # losses while training, so something random or normalising must be in it too.
    code = getattr(getattr(type(part), "forward", None), "__code__", None)
    names = () if code is None else code.co_names
    return "training" in names and any(map(_RANDOM_OR_NORM.search, names))
