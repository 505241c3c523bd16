"""The place of a loader that cannot say where it is: the epoch is begun again with its random state, and run up to there.

Costs the loading of the batches that were already used: minutes where an epoch takes hours. What comes after is exact as
long as each batch depends on nothing but the random state at the start of the epoch.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator
from typing import Any

from headrace.errors import ConfigurationError, StateMismatch
from headrace.loop.checkpoint.parts.randomness import Randomness
from headrace.loop.checkpoint.position.counted import Counted

__all__ = ["ReplayedPosition"]

log = logging.getLogger("headrace.checkpoint")


class ReplayedPosition:
    """For torch's DataLoader and any iterable that begins anew at each `iter`.

    Raises:
        ConfigurationError: it is an iterator, which cannot be begun again.
    """

    is_shared = False

    def __init__(self, loader: Any) -> None:
        if iter_is_itself(loader):
            raise ConfigurationError(
                f"{type(loader).__name__} is an iterator: it ends once, and cannot be brought back to a place",
                do="hand over the loader that it was made of",
            )
        self.loader = loader
        self.counted = Counted()
        self._random = Randomness(_generators_of(loader))
        self._at_start: Any = None
        self._left_off: dict[str, Any] | None = None

    def begin(self) -> Iterator[Any]:
        """Begins a pass; the first one after `load` is run up to the place."""
        saved, self._left_off = self._left_off, None
        if saved is None:
            self._at_start = self._random.state()
            return self.counted.begin(iter(self.loader))
        num = saved["batches"]
        self._at_start = saved["at_start"]
        if num == _length_of(self.loader):
            return self.counted.begin(iter(()), already=num)
        now = self._random.state()
        self._random.load(saved["at_start"])
        started = time.perf_counter()
        batches = iter(self.loader)
        if (played := sum(1 for _ in itertools.islice(batches, num))) != num:
            raise StateMismatch(f"{num:,} batches of the epoch had been used, and the loader ends after {played:,}")
        # The loop's own draws in between are not played again, so the streams of this process are set to where they were.
        self._random.load(now)
        log.info("loaded %s batches again to find the place: %.1f s", f"{num:,}", time.perf_counter() - started)
        return self.counted.begin(batches, already=num)

    def state(self) -> dict[str, Any]:
        """Random state at the start of the pass, and how many batches were handed over since."""
        under_way = not self.counted.is_over
        return {
            "kind": type(self.loader).__qualname__,
            "workers": getattr(self.loader, "num_workers", None),
            "length": _length_of(self.loader),
            "batches": self.counted.batches if under_way else 0,
            "is_over": not under_way,
            "at_start": self._at_start if under_way else None,
            "generators": self._random.state()["generators"],
        }

    def load(self, state: dict[str, Any]) -> list[str]:
        """Sets the loader's own generators; the batches are loaded again by `begin`."""
        length = _length_of(self.loader)
        if state.get("length") != length:
            raise StateMismatch(
                f"the loader's place was saved of one with {state.get('length')} batches, and this one has {length}",
                do="build the loader from the same data, with the same batch size",
            )
        self._random.load({**self._random.state(), "generators": state["generators"]})
        self._left_off = None if state["is_over"] else state
        here, there = getattr(self.loader, "num_workers", None), state["workers"]
        remarks = []
        if here != there:
            remarks.append(
                f"the loader had {there} workers and has {here}: same samples in the same order, other random draws in them"
            )
        elif here and getattr(self.loader, "persistent_workers", False):
            remarks.append(
                "workers that stay go on with their random streams from epoch to epoch, and these cannot be brought back: "
                "same samples in the same order, other random draws in them"
            )
        return remarks


def iter_is_itself(loader: Any) -> bool:
    """True for generators, files, `iter(...)` and the like."""
    return hasattr(loader, "__next__")


def _length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # a stream
        return None


def _generators_of(loader: Any) -> dict[str, Any]:
    """Generators that a loader and its samplers draw from, each once."""
    import torch

    found: dict[int, tuple[str, Any]] = {}
    holders = {
        "loader": loader,
        "sampler": getattr(loader, "sampler", None),
        "batch_sampler": getattr(loader, "batch_sampler", None),
    }
    holders["batch_sampler.sampler"] = getattr(holders["batch_sampler"], "sampler", None)
    for name, holder in holders.items():
        generator = getattr(holder, "generator", None)
        if isinstance(generator, torch.Generator):
            found.setdefault(id(generator), (f"{name}.generator", generator))
    return dict(found.values())
