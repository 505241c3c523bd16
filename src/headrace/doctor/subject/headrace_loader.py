"""headrace's own DataLoader, over data sets with row numbers and over streams."""

from __future__ import annotations

import dataclasses
from typing import Any

from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute, is_headrace
from headrace.doctor.subject.torch_loader import TorchLoader

__all__ = ["HeadraceLoader"]


class HeadraceLoader(TorchLoader):
    """Answers to torch's names. With other workers it is constructed again, because its runner is chosen then."""

    @classmethod
    def holds(cls, target: Any) -> bool:
        return is_headrace(target)

    def with_workers(self, num_workers: int, **changes: Any) -> Any:
        loader = self.loader
        said = attribute(loader, "_arguments")
        if not dataclasses.is_dataclass(said) or type(loader).__module__ != "headrace.engine.loader":
            raise CannotExamine("a class of its own over headrace's DataLoader, which cannot be constructed again")
        options: dict[str, Any] = {
            name: getattr(said, name)
            for name in (
                "batch_size",
                "shuffle",
                "sampler",
                "batch_sampler",
                "collate_fn",
                "timeout",
                "prefetch_factor",
                "persistent_workers",
                "on_error",
                "tail",
                "runner",
                "memory_limit",
                "rank",
                "world_size",
                "drop_last",
            )
        }
        options |= {
            name: getattr(loader, name)
            for name in ("contract", "seed", "worker_init_fn", "multiprocessing_context", "generator")
        }
        if num_workers == 0:
            options |= {"timeout": 0, "prefetch_factor": None, "persistent_workers": False, "runner": "auto"}
        dataset = changes.pop("dataset", loader.dataset)
        return type(loader)(dataset, **(options | {"num_workers": num_workers} | changes))
