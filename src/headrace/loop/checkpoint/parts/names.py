"""Models and names of parameters as their author knows them, whatever is wrapped around."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["layers_of", "optimizer_within", "plain", "two_sides"]

INNER = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""The attribute in which torch.compile, FSDP and activation checkpointing keep what they wrap."""


def layers_of(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Returns a model and what it wraps, from the outside in; the last one is the user's own."""
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    layers = [model]
    while True:
        inner = next((getattr(layers[-1], name) for name in INNER if name in layers[-1]._modules), None)
        if isinstance(layers[-1], DataParallel | DistributedDataParallel):
            inner = layers[-1].module
        if inner is None:
            return layers
        layers.append(inner)


def optimizer_within(optimizer: Any) -> torch.optim.Optimizer:
    """Returns the optimizer that Accelerate or Lightning has wrapped, or the one given."""
    from torch.optim import Optimizer

    while isinstance(inner := getattr(optimizer, "optimizer", None), Optimizer):
        optimizer = inner
    return optimizer  # type: ignore[no-any-return]


def plain(name: str, prefix: str = "") -> str:
    """Returns a name without what wrappers of parts added, behind the name of its model.

    >>> plain("body._orig_mod.fc.weight"), plain("fc.weight", "critic"), plain("")
    ('body.fc.weight', 'critic.fc.weight', '')
    """
    return ".".join(part for part in (prefix, *name.split(".")) if part and part not in INNER)


def two_sides(here: Iterable[str], there: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns what is only here, and what is only there, each in its order."""
    here, there = list(here), list(there)
    first, second = set(here), set(there)
    return [name for name in here if name not in second], [name for name in there if name not in first]
