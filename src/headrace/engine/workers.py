"""Who executes for a loader: the runner that its arguments ask for."""

from __future__ import annotations

from typing import Any

from headrace.engine.arguments import Arguments
from headrace.engine.governor import AutoRunner, Setting
from headrace.engine.run import HostRunner, InlineRunner, ProcessRunner, SlotTransport, ThreadRunner
from headrace.protocols import Runner

__all__ = ["make_runner"]


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
