"""The global generators that other people's transforms draw from: random, numpy.random and torch's on the CPU.

headrace's own stages never touch them. A transform that does is repeatable only if they are set before each sample;
the caller's own streams must not notice. So: save once, reseed per sample, put back at the end.

Costs, measured with Python 3.11, numpy 2.4, torch 2.13: `capture` and `moved_since` 4 us while nothing moves, else 70
and 120 us (numpy copies its 624 words one by one), `restore` 70 us, `reseed` 20 us. A worker process has no streams to
protect and needs only `reseed`.

Limits. Global generators are shared by all threads, so none of this may run beside other threads that draw. CUDA's
generators are left alone: a loader has no business on the device. torch is looked at only if it is loaded already.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from headrace.engine.transform import generator_memory
from headrace.keys import derive_key

__all__ = ["GlobalState", "capture", "keyed", "moved_since", "reseed", "restore"]


class _State(NamedTuple):
    """State of one generator, and the memory in which it was read; None where the memory cannot be seen."""

    value: Any
    memory: Any


@dataclasses.dataclass(slots=True, eq=False)  # not frozen: made per batch, where that costs 1 us
class GlobalState:
    """A snapshot of the global generators; opaque."""

    python: _State
    numpy: _State
    torch: bytes | None
    """None: torch was not loaded."""


_latest: dict[str, _State] = {"python": _State(None, None), "numpy": _State(None, None)}
"""The state that was asked for last, so that it need not be asked for again while its memory is the same."""


def capture() -> GlobalState:
    """Returns a snapshot of all global generators, without moving them."""
    return GlobalState(
        _state("python", generator_memory.of_random(), random.getstate),
        _state("numpy", generator_memory.of_numpy(), _numpy_state),
        _torch_state(),
    )


def _state(name: str, memory: Any, ask: Callable[[], Any]) -> _State:
    latest = _latest[name]
    if memory is None or latest.memory != memory:
        latest = _latest[name] = _State(ask(), memory)
    return latest


def _numpy_state() -> Any:
    return np.random.get_state(legacy=False)  # noqa: NPY002 the global generator is the point


def _torch_state() -> bytes | None:
    generator = _torch_generator()
    return None if generator is None else generator.get_state().numpy().tobytes()


def restore(snapshot: GlobalState) -> None:
    """Puts all global generators back to a snapshot."""
    random.setstate(snapshot.python.value)
    np.random.set_state(snapshot.numpy.value)  # noqa: NPY002 the global generator is the point
    torch_generator = _torch_generator()
    if torch_generator is not None and snapshot.torch is not None:
        torch = sys.modules["torch"]
        torch_generator.set_state(torch.frombuffer(bytearray(snapshot.torch), dtype=torch.uint8))


def moved_since(snapshot: GlobalState) -> tuple[str, ...]:
    """Returns the names of the generators that were drawn from or seeded since: of `random`, `numpy.random`, `torch`."""
    now = capture()
    moved = []
    if now.python is not snapshot.python and now.python.value != snapshot.python.value:
        moved.append("random")
    if now.numpy is not snapshot.numpy and not _is_same_numpy_state(now.numpy.value, snapshot.numpy.value):
        moved.append("numpy.random")
    if now.torch is not None:
        # Where torch was loaded only meanwhile, its generator stood at the beginning of the stream that it is in.
        before = _beginning() if snapshot.torch is None else snapshot.torch
        if now.torch != before:
            moved.append("torch")
    return tuple(moved)


def reseed(key: int) -> None:
    """Sets all global generators to streams that follow from a 128-bit key.

    random and numpy use the full key. torch's CPU generator takes 32 bits of any seed, so among a million samples
    about a hundred pairs share their torch draws; the streams stay the same in every run.
    """
    random.seed(key)
    # random and numpy are the same algorithm with the same way of seeding: the same key would give the same numbers.
    words = np.frombuffer(derive_key("numpy.random", key).to_bytes(16, "little"), dtype="<u4")
    np.random.seed(words)  # noqa: NPY002 the global generator is the point
    torch_generator = _torch_generator()
    if torch_generator is not None:
        torch_generator.manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)


@contextlib.contextmanager
def keyed(key: int) -> Iterator[None]:
    """Runs a block with global generators that follow from a key, and puts the caller's streams back afterwards."""
    snapshot = capture()
    reseed(key)
    try:
        yield
    finally:
        restore(snapshot)


def _torch_generator() -> Any:
    """The CPU generator of torch; None if torch is not loaded, or is only half loaded by another thread."""
    return getattr(sys.modules.get("torch"), "default_generator", None)


def _beginning() -> bytes:
    """The state of torch's generator before the first draw of its present seed."""
    generator = sys.modules["torch"].Generator().manual_seed(_torch_generator().initial_seed())
    state: bytes = generator.get_state().numpy().tobytes()
    return state


def _is_same_numpy_state(a: Any, b: Any) -> bool:
    """Compares states of any bit generator: nested dicts of numbers and arrays."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same_numpy_state(a[name], b[name]) for name in a)
    return bool(np.array_equal(a, b))
