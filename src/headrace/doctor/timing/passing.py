"""Begins and ends the epochs of a loader as a training loop does, and tells how long that took."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.lab.bench import Bench
from headrace.doctor.subject.looking import attribute, length
from headrace.doctor.subject.samplers import set_epoch_holders
from headrace.doctor.subject.walking import end_pass
from headrace.doctor.timing.timed import EpochStart

__all__ = ["Passing"]


class Passing:
    """The epochs of one loader, one after the other."""

    def __init__(self, loader: Any, bench: Bench, seed: int, before: Callable[[], None] | None = None) -> None:
        """`before` is called before each epoch."""
        self.loader = loader
        self._before = before
        self._bench, self._seed = bench, seed
        self._batches: Any = None
        self.epoch = -1
        self.last_size: int | None = None
        """Batches of the last epoch that was walked to its end."""

    def begin(self, ending_s: float = 0.0) -> Iterator[Any]:
        """Begins the next epoch: seeds the global generators, tells samplers its number, makes the iterator.

        Args:
            ending_s: Seconds that the end of the epoch before took.
        """
        self.epoch += 1
        for holder in set_epoch_holders(self.loader):
            with contextlib.suppress(Exception):  # one that wants more than a number
                holder.set_epoch(self.epoch)
        self._bench.reseed(self._seed, "epoch", self.epoch)
        if self._before is not None:
            self._before()
        self._ending_s = ending_s
        self._began_s = time.monotonic()
        self._batches = iter(self.loader)
        self._made_s = time.monotonic()
        return self._batches  # type: ignore[no-any-return]

    def started(self, first_s: float) -> EpochStart:
        """Returns how the epoch started, whose first batch was there at `first_s`."""
        return EpochStart(
            epoch=self.epoch,
            make_s=self._made_s - self._began_s,
            first_batch_s=first_s - self._made_s,
            ending_s=self._ending_s,
        )

    def leave(self) -> None:
        """Ends the epoch before its end, as `break` does, and workers with it unless they persist."""
        batches, self._batches = self._batches, None
        if hasattr(batches, "_shutdown_workers") and attribute(self.loader, "persistent_workers") is True:
            return  # torch's own iterator, which is used again
        with contextlib.suppress(Exception):  # what it raises now has no part in what was delivered
            end_pass(batches)

    def close(self) -> None:
        """Ends everything, workers that persist too."""
        kept, self._batches = self._batches, None
        inner = getattr(self.loader, "__dict__", {}).get("base_dataloader", self.loader)
        for batches in (kept, attribute(inner, "_iterator")):
            with contextlib.suppress(Exception):
                end_pass(batches)
        with contextlib.suppress(Exception):
            inner.__dict__["_iterator"] = None
        for held, end in (("_relay", "release"), ("_runner", "close")):  # headrace's own, whose workers may persist
            with contextlib.suppress(Exception):
                getattr(attribute(inner, held), end)()

    @property
    def num_batches(self) -> int | None:
        """Of a whole epoch: as many as the last one had, else what the loader says; None: it does not say."""
        return length(self.loader) if self.last_size is None else self.last_size
