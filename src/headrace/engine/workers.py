"""Who executes for a loader: the runner that its arguments ask for, and what each worker process is told about itself."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from headrace.engine.arguments import Arguments
from headrace.engine.governor import AutoRunner, Setting
from headrace.engine.run import HostRunner, InlineRunner, ProcessRunner, SlotTransport, ThreadRunner
from headrace.engine.transform import global_generators as generators
from headrace.keys import derive_key
from headrace.protocols import Runner

__all__ = ["WorkerSetup", "make_runner"]


def make_runner(arguments: Arguments, context: Any) -> Runner:
    """Returns the runner for these arguments; starts nothing.

    Two batches are prefetched per worker unless said otherwise: torch's default, so that a switch costs no memory.
    """
    if arguments.resolved_runner == "inline":
        return InlineRunner()

    def make(setting: Setting) -> Runner:
        if setting.runner == "threads":
            return ThreadRunner(setting.num_workers, setting.prefetch_factor, arguments.timeout)
        kind = HostRunner if setting.runner == "host" else ProcessRunner
        return kind(
            setting.num_workers,
            prefetch_factor=setting.prefetch_factor,
            timeout_s=arguments.timeout,
            context=context,
            persistent=arguments.persistent_workers,
            transport=SlotTransport(None if arguments.resolved_runner == "auto" else arguments.memory_limit),
        )

    if arguments.resolved_runner == "auto":
        return AutoRunner(make, memory_bytes=arguments.memory_limit)
    prefetch_factor = 2 if arguments.prefetch_factor is None else arguments.prefetch_factor
    return make(Setting(arguments.resolved_runner, arguments.fixed_num_workers, prefetch_factor))


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
