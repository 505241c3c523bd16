"""What becomes of a module's parameters: which got gradients, which an optimizer holds, which ever changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["Survey"]

MOST_SAMPLED = 16
"""Parameters of which a few values are kept, to see whether they change."""
NUM_VALUES = 4


class _Parameter:
    __slots__ = ("has_changed", "is_reached", "is_touched", "reference", "sample", "version")

    def __init__(self, parameter: Any) -> None:
        self.reference = weakref.ref(parameter)
        self.version = parameter._version
        self.sample: tuple[float, ...] | None = None
        self.is_reached = self.is_touched = self.has_changed = False


class Survey:
    """Looked at a few times in a run; the last look stays when the module is gone."""

    def __init__(self) -> None:
        self.num_steps = 0
        """Steps of optimizers that hold its parameters."""
        self.needs_gradients = True
        self._ids: frozenset[int] = frozenset()
        self._known: dict[str, _Parameter] = {}
        self._first_step = 0
        self._result: dict[str, Any] = {}

    def note(self, module: Any) -> None:
        """Notes which parameters a module has by now."""
        parameters = list(module.parameters())
        self._ids = frozenset(map(id, parameters))
        self.needs_gradients = any(parameter.requires_grad for parameter in parameters)

    def holds_any(self, identities: Iterable[int]) -> bool:
        """True if it has one of these parameters."""
        return not self._ids.isdisjoint(identities)

    def look(self, module: Any, optimised: Mapping[int, Mapping[str, Any]], is_new: Callable[[Any], bool]) -> None:
        """Looks at all parameters.

        Args:
            module: The root module.
            optimised: Identity of each parameter that an optimizer holds -> its parameter group.
            is_new: Says of a module whether the user's code made it and loaded nothing into it.
        """
        if not self.num_steps and not optimised:
            return
        self.note(module)
        lost: dict[str, bool] = {}
        num_parameters = num_optimised = num_reached = 0
        moving: list[_Parameter] = []
        rates: list[float] = []
        partly_frozen = False
        for prefix, part in module.named_modules():
            for name, parameter in part._parameters.items():
                if parameter is None:
                    continue
                known = self._update(f"{prefix}.{name}" if prefix else name, parameter)
                num_parameters += 1
                group = optimised.get(id(parameter))
                partly_frozen |= group is None or not parameter.requires_grad
                if not parameter.requires_grad:
                    continue
                if group is None:
                    if known.is_reached and not known.is_touched:
                        lost[f"{prefix}.{name}" if prefix else name] = is_new(part)
                    continue
                num_optimised += 1
                num_reached += known.is_reached
                rates.append(float(group.get("lr", 1.0)))
                if len(moving) < MOST_SAMPLED:
                    moving.append(known)
        for known in moving:
            self._compare(known)
        if not self._first_step:
            self._first_step = max(1, self.num_steps)
        is_still = bool(moving) and not any(known.has_changed for known in moving)
        self._result = {
            "unoptimised": tuple(lost),
            "unoptimised_is_new": bool(lost) and all(lost.values()),
            "num_parameters": num_parameters,
            "num_optimised": num_optimised,
            "num_reached": num_reached,
            "partly_frozen": partly_frozen,
            "never_updated": is_still and self.num_steps > self._first_step + 1 and max(rates) > 0,
        }

    def take_as_they_are(self) -> None:
        """Takes the values just loaded as the parameters' own: nobody changed them by hand."""
        for known in self._known.values():
            parameter = known.reference()
            if parameter is not None:
                known.version = parameter._version

    def result(self) -> dict[str, Any]:
        """Returns fields of a ModelTrace."""
        return {**self._result, "num_steps": self.num_steps}

    def _update(self, name: str, parameter: Any) -> _Parameter:
        known = self._known.get(name)
        if known is None or known.reference() is not parameter:
            known = self._known[name] = _Parameter(parameter)
        known.is_reached |= parameter.grad is not None
        known.is_touched |= parameter._version != known.version
        return known

    @staticmethod
    def _compare(known: _Parameter) -> None:
        """Takes the sum and a few values, and compares them with those that were taken first."""
        parameter = known.reference()
        if parameter is None:
            return
        flat = parameter.detach().reshape(-1)
        few = flat[:: max(1, len(flat) // NUM_VALUES)][:NUM_VALUES]
        sample = (*few.tolist(), flat.double().sum().item())
        if known.sample is None:
            known.sample = sample
        elif sample != known.sample:
            known.has_changed = True
