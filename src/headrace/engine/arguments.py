"""The loader's arguments, checked together before any worker starts. Torch's spelling, torch's defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from headrace.engine.failures import Policy, parse_policy
from headrace.engine.order.batches import Tail
from headrace.errors import ConfigurationError, nearest

__all__ = ["Arguments"]

RUNNERS = ("auto", "inline", "threads", "host", "processes")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of `DataLoader` that need no data set to be judged. Checks itself; see `DataLoader` for meanings."""

    batch_size: int | None
    shuffle: bool | None
    sampler: Any
    batch_sampler: Any
    num_workers: int | str
    collate_fn: Callable[[Any], Any] | None
    drop_last: bool
    timeout: float
    prefetch_factor: int | None
    memory_limit: int | None
    persistent_workers: bool
    on_error: Any
    tail: str | None
    runner: str
    rank: int | None
    world_size: int | None
    seed: int | None

    policy: Policy = dataclasses.field(init=False)
    resolved_tail: Tail = dataclasses.field(init=False)
    resolved_runner: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self._check_workers()
        self._check_batching()
        self._check_ranks()
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise ConfigurationError(f"seed={self.seed!r}: a seed is an integer, or None")
        object.__setattr__(self, "policy", parse_policy(self.on_error))
        object.__setattr__(self, "resolved_tail", self._tail())
        automatic = {0: "inline", "auto": "auto"}.get(self.num_workers, "processes")
        object.__setattr__(self, "resolved_runner", automatic if self.runner == "auto" else self.runner)

    def _check_workers(self) -> None:
        if self.timeout < 0:
            raise ConfigurationError(f"timeout={self.timeout}: seconds, 0 = no limit")
        if self.memory_limit is not None and (isinstance(self.memory_limit, bool) or self.memory_limit < 1):
            raise ConfigurationError(f"memory_limit={self.memory_limit!r}: bytes for all batches in flight, or None")
        if self.runner not in RUNNERS:
            raise ConfigurationError(
                f"runner={self.runner!r} is not known; there are {', '.join(RUNNERS)}{nearest(str(self.runner), RUNNERS)}"
            )
        if self.num_workers == "auto":
            self._check_automatic()
            return
        if isinstance(self.num_workers, bool) or not isinstance(self.num_workers, int) or self.num_workers < 0:
            raise ConfigurationError(
                f"num_workers={self.num_workers!r}: expected 0 (load in the caller) or more, or 'auto'"
            )
        if self.memory_limit is not None and (self.num_workers == 0 or self.runner == "threads"):
            raise ConfigurationError(
                "memory_limit bounds the memory that worker processes share with the loop, or what num_workers='auto' "
                "keeps in flight; without workers and with threads there is none",
                do="num_workers='auto'    or leave out memory_limit",
            )
        if self.runner == "inline" and self.num_workers:
            raise ConfigurationError(f"runner='inline' has no workers, num_workers={self.num_workers} asks for some")
        if self.runner in {"threads", "host", "processes"} and not self.num_workers:
            raise ConfigurationError(f"runner={self.runner!r} needs workers, num_workers is 0", do="num_workers=2")
        if self.num_workers == 0 and self.persistent_workers:
            raise ConfigurationError("persistent_workers=True needs workers, num_workers is 0")
        if self.prefetch_factor is not None and self.num_workers == 0:
            raise ConfigurationError("prefetch_factor needs workers, num_workers is 0")
        if self.prefetch_factor is not None and self.prefetch_factor < 1:
            raise ConfigurationError(f"prefetch_factor={self.prefetch_factor}: at least 1 batch per worker")

    def _check_automatic(self) -> None:
        """`num_workers="auto"` chooses what else would be said about workers."""
        given = {"runner": self.runner != "auto", "prefetch_factor": self.prefetch_factor is not None}
        clash = [name for name, is_given in given.items() if is_given]
        if clash:
            raise ConfigurationError(
                f"num_workers='auto' excludes {', '.join(clash)}: it chooses that too",
                do=f"num_workers=2    to choose {', '.join(clash)} yourself",
            )

    def _check_batching(self) -> None:
        if self.sampler is not None and self.shuffle:
            raise ConfigurationError("sampler and shuffle exclude each other: both say in which order")
        if self.batch_sampler is not None:
            given = {
                "batch_size": self.batch_size not in {None, 1},
                "shuffle": bool(self.shuffle),
                "sampler": self.sampler is not None,
                "drop_last": self.drop_last,
                "tail": self.tail not in {None, "partial"},
            }
            clash = [name for name, is_given in given.items() if is_given]
            if clash:
                raise ConfigurationError(f"batch_sampler excludes {', '.join(clash)}: it says all of that itself")
            return
        if self.batch_size is None:
            if self.drop_last or self.tail not in {None, "partial"}:
                raise ConfigurationError(
                    "batch_size=None delivers single samples: there is no last batch to drop or fill"
                )
        elif isinstance(self.batch_size, bool) or not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise ConfigurationError(f"batch_size={self.batch_size!r}: expected 1 or more, or None for single samples")

    def _check_ranks(self) -> None:
        if (self.rank is None) != (self.world_size is None):
            raise ConfigurationError(f"rank={self.rank} and world_size={self.world_size}: give both, or neither")
        if self.world_size is None:
            return
        num_replicas = getattr(self.sampler or self.batch_sampler, "num_replicas", None)
        if self.world_size > 1 and num_replicas not in {None, 1}:
            raise ConfigurationError(
                f"the sampler already splits over {num_replicas} ranks; with world_size={self.world_size} the loader "
                "would split its part once more",
                do="leave out rank and world_size, or leave out the sampler and say shuffle=True",
            )

    def _tail(self) -> Tail:
        if self.tail is None:
            return Tail.DROP if self.drop_last else Tail.PARTIAL
        words = [tail.value for tail in Tail]
        if self.tail not in words:
            raise ConfigurationError(
                f"tail={self.tail!r} is not known; there are {', '.join(words)}{nearest(str(self.tail), words)}"
            )
        if self.drop_last and self.tail != "drop":
            raise ConfigurationError(f"drop_last=True and tail={self.tail!r} contradict each other: give one of them")
        return Tail(self.tail)

    @property
    def fixed_num_workers(self) -> int:
        """Number of workers where it was said; 0 under "auto"."""
        return self.num_workers if isinstance(self.num_workers, int) else 0

    @property
    def effective_rank(self) -> int:
        """0 unless given."""
        return self.rank or 0

    @property
    def effective_world_size(self) -> int:
        """1 unless given."""
        return self.world_size or 1
