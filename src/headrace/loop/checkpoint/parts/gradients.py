"""Gradients that the optimizer has not used yet: a save between two micro-steps must not lose half a batch."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError
from headrace.loop.checkpoint.parts.models import Models
from headrace.loop.checkpoint.shards import arranged, local_of

if TYPE_CHECKING:
    import torch

__all__ = ["PendingGradients"]


class PendingGradients:
    """Gradients that came into being or changed since the last optimizer step.

    Those that a step has used and that nobody cleared yet are not state: the loop is about to clear them. Each rank has
    its own, since they are summed over ranks only at the end of an accumulation. Where FSDP2 shards the model they are
    summed by each backward pass, and divided as the parameters are.
    """

    name = "gradients"
    is_per_rank = True

    def __init__(self, models: Models, optimizers: Mapping[str, torch.optim.Optimizer]) -> None:
        self.models = models
        self._used: dict[str, tuple[Any, int]] = {}
        # The hooks hold no strong reference: a checkpointer that is forgotten must not live on in the optimizer.
        mine = weakref.ref(self)

        def after_step(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:  # noqa: ARG001 - torch's signature
            if (here := mine()) is not None:
                here.note_used(optimizer)

        self._hooks = [optimizer.register_step_post_hook(after_step) for optimizer in optimizers.values()]

    def note_used(self, optimizer: torch.optim.Optimizer) -> None:
        """Remembers the gradients of an optimizer that has just used them."""
        from torch.utils.weak import TensorWeakRef  # a plain weak reference dies while the tensor lives on in C++

        mine = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for name, parameter in self.models.parameters():
            if id(parameter) in mine and parameter.grad is not None:
                self._used[name] = TensorWeakRef(parameter.grad), _version(parameter.grad)

    def close(self) -> None:
        """Takes the hooks away."""
        for hook in self._hooks:
            hook.remove()

    def state(self) -> dict[str, Any]:
        """Returns pending gradients by the name of their parameter; empty at the boundary of an optimizer step.

        Raises:
            CheckpointError: FSDP2 holds gradients back that were not summed over the ranks yet.
        """
        for model in self.models.models.values():
            _refuse_held_back(model)
        return {
            name: parameter.grad
            for name, parameter in self.models.parameters()
            if parameter.grad is not None and not self._is_used(name, parameter.grad)
        }

    def load(self, state: Any) -> list[str]:
        """Gives each parameter its pending gradient, and takes away those there are."""
        self._used = {}
        for name, parameter in self.models.parameters():
            gradient = arranged(state.get(name), parameter)
            parameter.grad = None if gradient is None else gradient.to(parameter.device, copy=True)
        return []

    def _is_used(self, name: str, gradient: torch.Tensor) -> bool:
        known = self._used.get(name)
        return known is not None and known[0]() is gradient and known[1] == _version(gradient)


def _version(gradient: torch.Tensor) -> int:
    """Grows with each change; FSDP2 adds to what this rank holds, which the tensor around it does not count."""
    return local_of(gradient)._version


def _refuse_held_back(model: torch.nn.Module) -> None:
    """Passes if no gradient waits within FSDP2, where it can neither be read nor put back."""
    for path, module in model.named_modules():
        if not hasattr(module, "_get_fsdp_state"):
            continue
        state = module._get_fsdp_state()
        for group in getattr(state, "_fsdp_param_groups", [getattr(state, "_fsdp_param_group", None)]):
            for one in group.fsdp_params if group is not None else ():
                whole = getattr(one, "_unsharded_param", None)
                if one.unsharded_accumulated_grad is not None or (whole is not None and whole.grad is not None):
                    raise CheckpointError(
                        f"gradients of {path or 'the model'!r} have not been summed over the ranks yet",
                        why="set_requires_gradient_sync(False) keeps them within FSDP until the last backward of an accumulation",
                        do=("save behind optimizer.step()", "leave out set_requires_gradient_sync(False)"),
                    )
