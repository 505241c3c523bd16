"""One process that hosts threads: the trainer keeps its interpreter lock, and the workers share one copy of the data."""

from __future__ import annotations

from typing import ClassVar

from headrace.engine.run.processes import ProcessRunner

__all__ = ["HostRunner"]


class HostRunner(ProcessRunner):
    """Executes in the threads of one process of its own; arguments as for `ProcessRunner`, `num_workers` = threads.

    For code that releases the interpreter lock (decoders, numpy, waiting for disks and networks). Unlike threads of the
    trainer's process, these cannot slow its own Python code down, and a stuck one is ended with its process. If native
    code crashes, all workers die with it.
    """

    name: ClassVar[str] = "host"
    in_one_process: ClassVar[bool] = True
