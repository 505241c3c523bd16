"""Models: parameters and buffers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import StateMismatch, nearest
from headrace.loop.checkpoint.parts.names import layers_of, plain, two_sides
from headrace.loop.checkpoint.shards import arranged

if TYPE_CHECKING:
    import torch

__all__ = ["Models"]


class Models:
    """The modules of a run by name; "" is the name of the only one.

    Names are those of the user's own module, without what DistributedDataParallel or torch.compile put before them: a
    checkpoint of a wrapped model loads into a bare one, and the reverse.

    Args:
        models: The modules.
        name: The part's name in the checkpoint.
    """

    is_per_rank = False

    def __init__(self, models: Mapping[str, torch.nn.Module], name: str = "model") -> None:
        self.name = name
        self.layers = {prefix: layers_of(model) for prefix, model in models.items()}
        self.models = {prefix: layers[-1] for prefix, layers in self.layers.items()}

    def parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yields every parameter once, with the name that the checkpoint gives it."""
        seen: set[int] = set()
        for prefix, model in self.models.items():
            _reshard(model)
            for name, parameter in model.named_parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield plain(name, prefix), parameter

    def state(self) -> dict[str, Any]:
        """Returns what the modules' `state_dict()` say, under their own names: the file of it loads anywhere."""
        return {
            plain(name, prefix): value
            for prefix, model in self.models.items()
            for name, value in model.state_dict().items()
        }

    def load(self, state: Any) -> list[str]:
        """Copies tensors into the parameters and buffers there are, so that optimizers keep their hold of them."""
        mine = self.state()
        missing, extra = two_sides(mine, state)
        if missing or extra:
            raise StateMismatch(
                f"the model is not the one that was saved: {_listed('without ', extra)}{'; ' if missing and extra else ''}"
                f"{_listed('with new ', missing)}",
                why=f"{extra[0]!r} was saved{nearest(extra[0], missing)}" if missing and extra else None,
                do="build the model as it was when the checkpoint was written; its config is in manifest.json",
            )
        for name, here in mine.items():
            there = state[name]
            if (shape := getattr(here, "shape", None)) != getattr(there, "shape", None):
                raise StateMismatch(
                    f"{name!r} was saved with shape {tuple(there.shape)} and has {tuple(shape or ())} here"
                )
        for prefix, model in self.models.items():
            model.load_state_dict(
                {name: arranged(state[plain(name, prefix)], here) for name, here in model.state_dict().items()}
            )
        cast = [name for name, here in mine.items() if _dtype(here) != _dtype(state[name])]
        return [f"{name!r} was saved as {_dtype(state[name])} and is {_dtype(mine[name])} here" for name in cast[:1]]


def _reshard(model: torch.nn.Module) -> None:
    """Has each part of a model that FSDP2 shards hold its shards: behind an evaluation, some hold whole parameters."""
    fsdp = sys.modules.get("torch.distributed.fsdp")  # imported by whoever shards
    if (kind := getattr(fsdp, "FSDPModule", None)) is not None:
        for module in model.modules():
            if isinstance(module, kind):
                module.reshard()


def _dtype(value: Any) -> Any:
    return getattr(value, "dtype", type(value))


def _listed(before: str, names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(map(repr, itertools.islice(names, 3)))
    return f"{before}{shown}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
