"""How the user's training function is called.

The least that it must be: a function that takes a folder, goes on from what lies in it (begins, if it is empty), and
saves there. Its first parameter is that folder. A parameter `max_steps` (or `num_steps`, `steps`, or simply the second
one without a default) says with how many steps of the whole run it stops; without one it is ended from outside. A
parameter `num_workers` is given other values to see whether that matters.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from headrace.errors import TargetError

__all__ = ["Call", "how_to_call"]

_STEPS = ("max_steps", "num_steps", "total_steps", "steps", "max_iters", "num_iters")
_WORKERS = ("num_workers", "workers")
_FORM = "def train(checkpoint_dir, max_steps): ...    goes on from what lies in checkpoint_dir, and saves there"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Names of the parameters to fill."""

    folder: str
    steps: str | None
    workers: str | None

    def arguments(self, folder: str, max_steps: int | None, num_workers: int | None) -> dict[str, Any]:
        """Returns the arguments of one run."""
        filled: dict[str, Any] = {self.folder: folder}
        if self.steps is not None and max_steps is not None:
            filled[self.steps] = max_steps
        if self.workers is not None and num_workers is not None:
            filled[self.workers] = num_workers
        return filled


def how_to_call(function: Callable[..., Any], spec: str) -> Call:
    """Reads it off the signature.

    Raises:
        TargetError: it is no function, takes no folder, or needs more than can be given.
    """
    if not callable(function) or isinstance(function, type):
        raise TargetError(f"TARGET {spec}: --resume needs a function that trains", do=_FORM)
    taken = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY}
    ]
    if not taken:
        raise TargetError(f"TARGET {spec}: it takes no folder to save to and to go on from", do=_FORM)
    names = [one.name for one in taken]
    steps = next((name for name in _STEPS if name in names[1:]), None)
    workers = next((name for name in _WORKERS if name in names[1:]), None)
    needed = [one.name for one in taken[1:] if one.default is one.empty and one.name not in {steps, workers}]
    if steps is None and needed[:1] == names[1:2]:
        steps = needed.pop(0) if needed else None
    if needed:
        raise TargetError(
            f"TARGET {spec}: it needs more than a folder and a number of steps: {', '.join(needed)}", do=_FORM
        )
    return Call(folder=names[0], steps=steps, workers=workers)
