"""Who executes for a loader: the runner that its arguments ask for, and what each worker process is told about itself."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from headrace.engine.arguments import Arguments
from headrace.engine.run import InlineRunner, ProcessRunner, SlotTransport, ThreadRunner
from headrace.engine.transform import global_generators as generators
from headrace.errors import ConfigurationError
from headrace.keys import derive_key
from headrace.protocols import Runner

__all__ = ["WorkerSetup", "make_runner"]


def make_runner(arguments: Arguments, context: Any, memory_limit: int | None = None) -> Runner:
    """Returns the runner for these arguments; starts nothing.

    Two batches are prefetched per worker unless said otherwise: torch's default, so that a switch costs no memory.
    """
    if memory_limit is not None and arguments.resolved_runner != "processes":
        raise ConfigurationError(
            f"memory_limit={memory_limit:,} bounds the memory that worker processes share with the loop; "
            f"runner={arguments.resolved_runner!r} shares none",
            do="leave out memory_limit, or num_workers=2",
        )
    prefetch_factor = 2 if arguments.prefetch_factor is None else arguments.prefetch_factor
    if arguments.resolved_runner == "inline":
        return InlineRunner()
    if arguments.resolved_runner == "threads":
        return ThreadRunner(arguments.num_workers, prefetch_factor=prefetch_factor, timeout_s=arguments.timeout)
    return ProcessRunner(
        arguments.num_workers,
        prefetch_factor=prefetch_factor,
        timeout_s=arguments.timeout,
        context=context,
        persistent=arguments.persistent_workers,
        transport=SlotTransport(memory_limit),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerSetup:
    """Readies a worker process as torch does, so that code written for torch's loader finds what it expects.

    `torch.utils.data.get_worker_info()` answers, global generators are seeded by (seed, worker), and `worker_init_fn`
    is called. With several ranks the workers of all ranks are numbered through: a stream that splits itself by
    `get_worker_info()` is thereby split over ranks too.
    """

    dataset: Any
    seed: int
    init: Callable[[int], None] | None
    rank: int = 0
    world_size: int = 1

    def __call__(self, worker: int, num_workers: int) -> None:
        """Called once in each worker process before its first order."""
        key = derive_key("worker", self.seed, self.rank, worker)
        generators.reseed(key)
        self.announce(worker, num_workers, key)
        if self.init is not None:
            self.init(worker)

    def announce(self, worker: int, num_workers: int, key: int = 0) -> None:
        """Makes `get_worker_info()` answer; only where torch is loaded, for nobody else can ask."""
        if "torch" not in sys.modules:
            return
        from torch.utils.data._utils import worker as torch_worker

        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=self.rank * num_workers + worker,
            num_workers=self.world_size * num_workers,
            seed=key % 2**63,
            dataset=self.dataset,
        )

    @staticmethod
    def retract() -> None:
        """Makes `get_worker_info()` answer None again, as it does outside workers."""
        if "torch" in sys.modules:
            from torch.utils.data._utils import worker as torch_worker

            torch_worker._worker_info = None
