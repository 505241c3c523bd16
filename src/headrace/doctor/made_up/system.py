"""Made-up machines, paces and growth."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.system import Growth, MachineFacts, Pace

__all__ = ["a_machine", "a_pace", "growth"]

GIB = 2**30


def a_machine(**more: Any) -> MachineFacts:
    """A quiet machine with four cores and enough of everything, if nothing else is said."""
    usual: dict[str, Any] = {
        "cores": 4,
        "usable_cores": 4,
        "free_memory_bytes": 8 * GIB,
        "shm_size_bytes": 4 * GIB,
        "shm_free_bytes": 4 * GIB,
        "file_limit": 65_536,
        "open_files": 20,
        "sharing_strategy": "file_descriptor",
        "cpu_pressure": 1.0,
    }
    return MachineFacts(**{**usual, **more})


def a_pace(**more: Any) -> Pace:
    """A loader with small batches and no workers, if nothing else is said."""
    usual: dict[str, Any] = {
        "num_batches": 10_000,
        "num_workers": 0,
        "prefetch_factor": 2,
        "batch_bytes": 3_000,
        "tensors_per_batch": 2,
        "single_s": (),
        "single_cpu_share": None,
        "worker_s": (),
        "worker_first_s": None,
        "worker_cpu_share": None,
        "single_cpu_s": None,
        "handover_cpu_s": None,
    }
    return Pace(**{**usual, **more})


def growth(**more: Any) -> Growth:
    """Reads after which nothing stays, if nothing else is said."""
    usual: dict[str, Any] = {
        "num_reads": 100,
        "num_samples": 50_000,
        "num_workers": 0,
        "files": (9, 9, 9, 9, 9),
        "memory_bytes": (1, 1, 1, 1, 1),
        "file_limit": 1024,
        "free_memory_bytes": 8 * GIB,
    }
    return Growth(**{**usual, **more})
