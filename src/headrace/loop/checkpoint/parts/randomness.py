"""Random state: Python, numpy, torch on every device, and generators of the user's own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import ConfigurationError

__all__ = ["Randomness"]


class Randomness:
    """The global generators of this process, and named ones: torch.Generator, numpy Generator or RandomState, Random.

    Device generators are read only of backends that are already in use: asking would start the others.
    """

    name = "random"
    is_per_rank = True

    def __init__(self, generators: Mapping[str, Any]) -> None:
        self.generators = dict(generators)
        for name, generator in self.generators.items():
            _read(generator, name)

    def state(self) -> dict[str, Any]:
        """Returns the state of each."""
        import torch

        return {
            "python": random.getstate(),
            "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - people draw from it
            "torch": torch.get_rng_state(),
            "devices": _devices(),
            "generators": {name: _read(generator, name) for name, generator in self.generators.items()},
        }

    def load(self, state: Any) -> list[str]:
        """Sets each; returns which devices and generators could not be set."""
        import torch

        remarks = []
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])  # noqa: NPY002 - people draw from it
        torch.set_rng_state(state["torch"])
        here = _devices()
        for kind, states in state["devices"].items():
            if len(here.get(kind, ())) != len(states):
                remarks.append(
                    f"random state of {len(states)} {kind} devices was saved; {len(here.get(kind, ()))} are here"
                )
            for number, one in list(enumerate(states))[: len(here.get(kind, ()))]:
                if kind == "mps":
                    torch.mps.set_rng_state(one)
                else:
                    getattr(torch, kind).set_rng_state(one, number)
        for name, generator in self.generators.items():
            if name in state["generators"]:
                _write(generator, state["generators"][name])
            else:
                remarks.append(f"generator {name!r} was not saved, and goes on from where it is")
        return remarks


def _devices() -> dict[str, list[Any]]:
    """State of each device's generator, per backend in use."""
    import torch

    found: dict[str, list[Any]] = {}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found["cuda"] = torch.cuda.get_rng_state_all()
    if hasattr(torch, "xpu") and torch.xpu.is_available() and torch.xpu.is_initialized():  # type: ignore[no-untyped-call]
        found["xpu"] = torch.xpu.get_rng_state_all()
    if torch.backends.mps.is_available():
        found["mps"] = [torch.mps.get_rng_state()]
    return found


def _read(generator: Any, name: str) -> Any:
    import torch

    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    if isinstance(generator, random.Random):
        return generator.getstate()
    raise ConfigurationError(
        f"generator {name!r} is of type {type(generator).__name__}",
        do="torch.Generator, numpy.random.Generator, numpy.random.RandomState or random.Random",
    )


def _write(generator: Any, state: Any) -> None:
    import torch

    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)
