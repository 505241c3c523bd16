"""What each worker process is told about itself, before its first order.

In a file of its own, because workers that are not forked import it: they need neither runners nor a governor.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from typing import Any

from headrace.engine.transform import global_generators as generators
from headrace.keys import derive_key

__all__ = ["WorkerSetup"]

_TORCH_WORKER = "torch.utils.data._utils.worker"


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
        if _TORCH_WORKER in sys.modules:
            self.announce(worker, num_workers, key)
        else:
            _when_loaded(_TORCH_WORKER, lambda: self.announce(worker, num_workers, key))
        if self.init is not None:
            self.init(worker)

    def announce(self, worker: int, num_workers: int, key: int = 0) -> None:
        """Makes `get_worker_info()` answer; only where torch is loaded: before that, nobody can ask."""
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


def _when_loaded(module: str, then: Callable[[], None]) -> None:
    """Calls `then` as soon as a module has been imported, whoever imports it.

    A data set that imports torch when it is first read must find `get_worker_info()` answering, or each worker of a
    stream would deliver all of it.
    """
    sys.meta_path.insert(0, _Lookout(module, then))


class _Lookout(importlib.abc.MetaPathFinder):
    """Finds one module, once, as it is found without it."""

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module = module
        self._then = then

    def find_spec(  # called by Python's import
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module: Any) -> None:
                execute(module)
                self._then()

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign] # of this one import's loader
        return spec
