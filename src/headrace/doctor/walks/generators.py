"""States of random generators, as short digests: those of the interpreter, and those that the user's objects hold.

Two numbers per generator: its state, which moves with every draw, and its origin, which stays as long as it is not
seeded anew. Equal origins mean one stream, however far each has been read.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import xxhash

from headrace.doctor.probes.graph_walk import walk

__all__ = ["GLOBALS", "States", "global_states", "held_generators", "held_states", "set_back"]

States = dict[str, list[str]]
"""Name or path -> [state, origin, kind]."""

GLOBALS = ("random", "numpy.random", "torch")
MAX_ITEMS = 5_000
"""Objects looked at for held generators: some milliseconds, for each of a worker's first samples."""


def _hash(*parts: Any) -> str:
    content = xxhash.xxh3_64()
    for part in parts:
        content.update(part if isinstance(part, bytes) else repr(part).encode())
    return content.hexdigest()


def global_states() -> States:
    """Returns the states of the generators that `random`, `numpy.random` and torch draw from without being told."""
    found = {"random": _of_python(random.getstate())}
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is not None:
        found["numpy.random"] = _of_mersenne(numpy_random.get_state(legacy=False))
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        found["torch"] = _of_torch(torch.default_generator)
    return {name: [*states, name] for name, states in found.items()}


def held_states(**roots: Any) -> States:
    """Returns the states of generators that objects hold, by the path on which each is reached."""
    found: States = {}
    for name, root in roots.items():
        for path, value in walk(root, name, max_items=MAX_ITEMS):
            states = None if _is_global(value) else _of(value)
            if states is not None:
                kind = type(value)
                found[path] = [*states, f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"]
    return found


def held_generators(root: Any) -> list[Any]:
    """Returns the generator objects that an object holds, however deep."""
    found = (value for _, value in walk(root, "root", max_items=MAX_ITEMS))
    return [value for value in found if not _is_global(value) and _of(value) is not None]


def set_back(generator: Any, seed: int) -> None:
    """Seeds a generator object anew; equal seeds, equal draws."""
    if hasattr(generator, "manual_seed"):  # torch
        generator.manual_seed(seed)
    elif hasattr(generator, "seed"):  # random.Random, numpy's RandomState
        generator.seed(seed % 2**32)
    else:
        bits = getattr(generator, "bit_generator", generator)
        bits.state = type(bits)(seed).state


def _is_global(value: Any) -> bool:
    """True for the generators behind the modules' own functions: `from random import randint` leads to one."""
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    torch: Any = sys.modules.get("torch")
    known = (
        getattr(random.random, "__self__", None),
        getattr(getattr(numpy_random, "mtrand", None), "_rand", None),
        getattr(torch, "default_generator", None),
    )
    return any(value is one for one in known)


def _of(value: Any) -> list[str] | None:
    """State and origin; None for what is no generator."""
    if isinstance(value, random.Random):
        return None if isinstance(value, random.SystemRandom) else _of_python(value.getstate())
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is not None:
        if isinstance(value, numpy_random.Generator):
            value = value.bit_generator
        if isinstance(value, numpy_random.BitGenerator):
            return _of_numpy(value)
        if isinstance(value, numpy_random.RandomState):
            return _of_mersenne(value.get_state(legacy=False))
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "Generator") and isinstance(value, torch.Generator):
        return _of_torch(value) if value.device.type == "cpu" else None
    return None


def _of_python(state: Any) -> list[str]:
    words = state[1]
    return [_hash(words, state[2]), _hash(words[:-1])]


def _of_mersenne(state: Any) -> list[str]:
    inner = state["state"]
    if "key" not in inner:  # a RandomState over another bit generator
        return [_hash(state), _hash(inner.get("inc"))]
    words = inner["key"].tobytes()
    # The words change only after each 624 draws: the best origin that there is.
    return [_hash(words, inner["pos"], state.get("has_gauss"), state.get("gauss")), _hash(words)]


def _of_numpy(bits: Any) -> list[str]:
    state = bits.state
    inner = state["state"]
    if state["bit_generator"] == "MT19937":
        return _of_mersenne(state)
    fixed = [value for name, value in inner.items() if name in {"inc", "key"}]
    readable = {name: getattr(value, "tolist", lambda value=value: value)() for name, value in inner.items()}
    rest = {name: str(value) for name, value in state.items() if name != "state"}
    origin = _hash([getattr(value, "tolist", lambda value=value: value)() for value in fixed])
    return [_hash(readable, rest), origin if fixed else _hash(readable, rest)]


def _of_torch(generator: Any) -> list[str]:
    return [_hash(generator.get_state().numpy().tobytes()), _hash(generator.initial_seed())]
