"""Random generators: the global ones, and those that are objects. Libraries that nobody has imported are left alone."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

__all__ = ["get_state", "global_states", "is_generator", "is_global", "set_state"]


def global_states() -> dict[str, Any]:
    """Returns what tells the states of the global generators apart; only of libraries that are imported."""
    states: dict[str, Any] = {"random": hash(random.getstate())}
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is not None:
        kind, words, *rest = numpy_random.get_state()
        states["numpy.random"] = (kind, words.tobytes(), tuple(rest))
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def is_global(generator: Any) -> bool:
    """True for the generators whose states `global_states` tells: functions hold them as defaults of arguments."""
    known = [
        getattr(random, "_inst", None),
        getattr(getattr(sys.modules.get("numpy.random"), "mtrand", None), "_rand", None),
        getattr(sys.modules.get("torch"), "default_generator", None),
    ]
    return any(generator is one for one in known)


def is_generator(value: Any) -> bool:
    """True for a random generator of Python, numpy or torch."""
    torch: Any = sys.modules.get("torch")
    kinds = [random.Random, np.random.Generator, np.random.RandomState]
    kinds += [torch.Generator] if torch is not None and hasattr(torch, "Generator") else []
    # The operating system's generator has no state.
    return isinstance(value, tuple(kinds)) and not isinstance(value, random.SystemRandom)


def get_state(generator: Any) -> Any:
    """Returns the state of a generator, as `set_state` takes it."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    if hasattr(generator, "getstate"):
        return generator.getstate()
    return generator.get_state()


def set_state(generator: Any, state: Any) -> None:
    """Sets a generator back to a state that it had."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif hasattr(generator, "setstate"):
        generator.setstate(state)
    else:
        generator.set_state(state)
