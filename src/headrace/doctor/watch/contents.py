"""What a saved object holds, recognised by its form: state of a model, an optimizer, a schedule, random generators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["holds", "integers", "keys"]

DEEPEST = 3
MOST_ITEMS = 2000
"""Entries of one mapping that are looked at."""
_RNG_BYTES = {5056, 16, 816}
"""Sizes of the states of torch's generators, as vectors of bytes: CPU, CUDA, CUDA before torch 1.8."""
_STEP = re.compile(r"step|iter|batch|offset|position|seen|consumed", re.IGNORECASE)
_EPOCH = re.compile(r"epoch|round", re.IGNORECASE)


def holds(value: Any) -> tuple[str, ...]:
    """Returns what an object holds, in a fixed order; see `CheckpointTrace.holds`."""
    found = set(_found(value, DEEPEST))
    order = ("model", "optimizer", "scheduler", "scaler", "random-state", "loader", "epoch", "step")
    return tuple(name for name in order if name in found)


def keys(value: Any) -> tuple[str, ...]:
    """Returns the first keys of a mapping; empty for anything else."""
    return tuple(map(str, list(value)[:20])) if isinstance(value, Mapping) else ()


def integers(value: Any) -> tuple[str, ...]:
    """Returns the keys under which a mapping holds plain integers: how far training had come."""
    if not isinstance(value, Mapping):
        return ()
    return tuple(key for key, part in value.items() if isinstance(key, str) and type(part) is int)


def _found(value: Any, depth: int) -> Iterator[str]:
    kind = _kind(value)
    if kind is not None:
        yield kind
        return
    if depth == 0:
        return
    if isinstance(value, Mapping):
        for key, part in list(value.items())[:MOST_ITEMS]:
            if type(part) is int and isinstance(key, str):
                if _EPOCH.search(key):
                    yield "epoch"
                if _STEP.search(key):
                    yield "step"
            yield from _found(part, depth - 1)
    elif isinstance(value, (list, tuple)):
        for part in value[:50]:
            yield from _found(part, depth - 1)
    elif type(value).__module__ != "builtins" and hasattr(value, "__dict__") and not _is_tensor(value):
        yield from _found(vars(value), depth - 1)


def _kind(value: Any) -> str | None:
    import torch

    if isinstance(value, torch.nn.Module):
        return "model"
    if isinstance(value, torch.optim.Optimizer):
        return "optimizer"
    if isinstance(value, torch.optim.lr_scheduler.LRScheduler):
        return "scheduler"
    if isinstance(value, Mapping):
        return _kind_of_mapping(value)
    if _is_tensor(value):
        is_state = value.dtype is torch.uint8 and value.dim() == 1 and value.numel() in _RNG_BYTES
        return "random-state" if is_state else None
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[1], tuple) and len(value[1]) == 625:
        return "random-state"  # random.getstate()
    if isinstance(value, tuple) and len(value) == 5 and value[0] == "MT19937":
        return "random-state"  # numpy.random.get_state()
    return None


def _kind_of_mapping(value: Mapping[Any, Any]) -> str | None:
    names = {key for key in value if isinstance(key, str)}
    if {"state", "param_groups"} <= names:
        return "optimizer"
    if "last_epoch" in names and names & {"_step_count", "base_lrs", "_last_lr", "num_bad_epochs", "_schedulers"}:
        return "scheduler"
    if {"scale", "growth_factor", "_growth_tracker"} <= names:
        return "scaler"
    if "bit_generator" in names:
        return "random-state"
    # headrace's own cursor, and torchdata's stateful loader.
    if {"seed", "epoch", "consumed"} <= names or names & {"_snapshot", "_sampler_iter_state", "_num_yielded"}:
        return "loader"
    tensors = [part for part in list(value.values())[:MOST_ITEMS] if _is_tensor(part)]
    is_named = 2 * len(tensors) > len(value) == len(names)
    return "model" if is_named and any(part.is_floating_point() for part in tensors) else None


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
