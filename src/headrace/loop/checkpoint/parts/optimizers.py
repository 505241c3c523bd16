"""Optimizers, keyed by the names of the parameters: an order of parameters that changed is noticed, not mixed up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigurationError, StateMismatch
from headrace.loop.checkpoint.parts.models import Models
from headrace.loop.checkpoint.parts.names import two_sides
from headrace.loop.checkpoint.shards import arranged

if TYPE_CHECKING:
    import torch

__all__ = ["Optimizers"]


class Optimizers:
    """The optimizers of a run by name; "" is the name of the only one.

    Raises:
        ConfigurationError: an optimizer holds a parameter that no model of the checkpoint has.
    """

    name = "optimizer"
    is_per_rank = False

    def __init__(self, optimizers: Mapping[str, torch.optim.Optimizer], models: Models) -> None:
        self.optimizers = dict(optimizers)
        self.models = models
        for key, optimizer in self.optimizers.items():
            self._names(key, optimizer)

    def state(self) -> dict[str, Any]:
        """Per optimizer: its groups with the names of their parameters, and the state of each parameter by name."""
        return {key: self._state_of(key, optimizer) for key, optimizer in self.optimizers.items()}

    def load(self, state: Any) -> list[str]:
        """Gives each parameter the state that was saved under its name."""
        missing, extra = two_sides(self.optimizers, state)
        if missing or extra:
            raise StateMismatch(
                f"optimizers saved: {', '.join(state) or 'none'}; here: {', '.join(self.optimizers) or 'none'}"
            )
        for key, optimizer in self.optimizers.items():
            self._check(key, optimizer, state[key])
        for key, optimizer in self.optimizers.items():
            self._load_one(key, optimizer, state[key])
        return []

    def _names(self, key: str, optimizer: torch.optim.Optimizer) -> list[list[str]]:
        """The names of the parameters of each group, in the optimizer's order."""
        names = {id(parameter): name for name, parameter in self.models.parameters()}
        found = []
        for number, group in enumerate(optimizer.param_groups):
            for parameter in group["params"]:
                if id(parameter) not in names:
                    raise ConfigurationError(
                        f"{_called(key)} trains a parameter of shape {tuple(parameter.shape)} (group {number}) that is in "
                        "none of the models given",
                        why="a checkpoint without it could not go on; or the optimizer was made of another copy of the model",
                        do='Checkpointer(..., model={"net": net, "head": head}) with every module that it trains',
                    )
            found.append([names[id(parameter)] for parameter in group["params"]])
        return found

    def _state_of(self, key: str, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        names = self._names(key, optimizer)
        # state_dict runs the optimizer's own hooks; its numbers of parameters count through the groups.
        said = optimizer.state_dict()
        flat = [name for group in names for name in group]
        numbers = [number for group in said["param_groups"] for number in group["params"]]
        by_number = dict(zip(numbers, flat, strict=True))
        groups = [
            {**{word: value for word, value in group.items() if word not in {"params", "param_names"}}, "params": mine}
            for group, mine in zip(said["param_groups"], names, strict=True)
        ]
        rest = {word: value for word, value in said.items() if word not in {"state", "param_groups"}}
        of_parameters = {by_number[number]: value for number, value in said["state"].items() if number in by_number}
        return {"groups": groups, "state": of_parameters, **({"rest": rest} if rest else {})}

    def _check(self, key: str, optimizer: torch.optim.Optimizer, saved: Any) -> None:
        names = self._names(key, optimizer)
        there = [group["params"] for group in saved["groups"]]
        if len(names) != len(there):
            raise StateMismatch(
                f"{_called(key)} was saved with {len(there)} groups of parameters and has {len(names)} here"
            )
        for number, (here, then) in enumerate(zip(names, there, strict=True)):
            missing, extra = two_sides(here, then)
            if missing or extra:
                only = f"{extra[0]!r} was in it" if extra else f"{missing[0]!r} was not in it"
                raise StateMismatch(
                    f"group {number} of {_called(key)} holds other parameters than when it was saved: {only}",
                    do="build the optimizer from the same parameters, in the same groups",
                )

    def _load_one(self, key: str, optimizer: torch.optim.Optimizer, saved: Any) -> None:
        import torch

        names = self._names(key, optimizer)
        flat = [name for group in names for name in group]
        number = {name: place for place, name in enumerate(flat)}
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        of_parameters = {name: arranged(value, parameters[number[name]]) for name, value in saved["state"].items()}
        optimizer.load_state_dict(
            {
                **arranged(saved.get("rest", {}), optimizer.state_dict()),
                "state": {number[name]: value for name, value in of_parameters.items()},
                "param_groups": [
                    {**group, "params": [number[name] for name in mine]}
                    for group, mine in zip(saved["groups"], names, strict=True)
                ],
            }
        )
        # load_state_dict casts to the parameter's type, which loses bits where the state is kept in a wider one.
        for name, value in of_parameters.items():
            state = optimizer.state[parameters[number[name]]]
            for word, there in value.items():
                here = state.get(word)
                if isinstance(there, torch.Tensor) and isinstance(here, torch.Tensor) and here.dtype != there.dtype:
                    state[word] = there.to(here.device, copy=True)


def _called(key: str) -> str:
    return f"optimizer {key!r}" if key else "the optimizer"
