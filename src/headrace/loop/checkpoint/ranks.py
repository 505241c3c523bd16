"""The ranks of a run: how many there are, and how they agree on when to save and what to load."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any

__all__ = ["Ranks", "this_rank"]

PATIENCE_S = 10.0
"""Seconds that a rank which leaves waits for the others' last answers."""


def this_rank() -> int:
    """Returns the number of this process among those of `torch.distributed`; 0 where that is not in use."""
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


class Ranks:
    """This process among those of `torch.distributed`; 0 of 1 where that is not in use."""

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist = dist if dist.is_available() and dist.is_initialized() else None
        self.rank: int = self._dist.get_rank() if self._dist else 0
        self.world_size: int = self._dist.get_world_size() if self._dist else 1
        # Of its own and on the CPU: flags must not queue behind the gradients, nor need a device.
        self._group = self._dist.new_group(backend="gloo") if self._dist and self.world_size > 1 else None
        self._asked: tuple[Any, Any] | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def most_urgent_before(self, here: int) -> int:
        """Returns the greatest number that any rank said at the call before this one; every rank gets the same answer.

        One step late, so that nobody waits: the answers travel while the step is computed. Alone: `here`.
        """
        if self._group is None or self._dist is None:
            return here
        import torch

        asked = 0
        if self._asked is not None:
            work, flag = self._asked
            work.wait()
            asked = int(flag.item())
        flag = torch.tensor([here], dtype=torch.uint8)
        self._asked = (self._dist.all_reduce(flag, op=self._dist.ReduceOp.MAX, group=self._group, async_op=True), flag)
        return asked

    def close(self) -> None:
        """Waits for the question that is under way, and gives the group back: gloo aborts a process that ends before.

        Every rank has asked as often as this one. A rank that has died answers nothing, so it is waited for a while only.
        """
        if self._asked is not None:
            work, _ = self._asked
            self._asked = None
            with contextlib.suppress(RuntimeError):
                work.wait(timeout=dt.timedelta(seconds=PATIENCE_S))
        if self._group is not None and self._dist is not None and self._dist.is_initialized():
            self._dist.destroy_process_group(self._group)
        self._group = None

    def from_first(self, value: Any) -> Any:
        """Returns rank 0's value on every rank; plain values only."""
        if self._group is None or self._dist is None:
            return value
        held = [value]
        self._dist.broadcast_object_list(held, src=0, group=self._group)
        return held[0]

    def from_all(self, value: Any) -> list[Any]:
        """Returns the values of all ranks, in their order, on each of them; plain values only."""
        if self._group is None or self._dist is None:
            return [value]
        held: list[Any] = [None] * self.world_size
        self._dist.all_gather_object(held, value, group=self._group)
        return held

    def wait_for_all(self) -> None:
        """Returns when every rank has come here."""
        if self._group is not None and self._dist is not None:
            self._dist.barrier(group=self._group)
