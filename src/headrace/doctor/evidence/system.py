"""What the machine offers, what the loader takes of it, and how fast it goes without and with workers."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence

__all__ = ["LOUD", "Container", "Containers", "Growth", "MachineFacts", "Pace", "ThreadPace"]


LOUD = 40.0
"""Percent of ten seconds in which something waited for a core, from which on only very large differences of speed can be
told from the noise."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts(Evidence):
    """What the process that loads may use, once TARGET has been loaded (which may change it)."""

    cores: int
    """What `os.cpu_count()` says: the machine's."""
    usable_cores: int
    """What affinity and quota leave to the process."""
    free_memory_bytes: int
    """Free for this process, by the machine and by the container's limit."""
    shm_size_bytes: int | None
    """Size of /dev/shm; None: there is none."""
    shm_free_bytes: int | None
    file_limit: int
    """Open files that are allowed (the soft limit)."""
    open_files: int
    """Open now."""
    sharing_strategy: str | None
    """Torch's way of passing tensors between processes: `file_descriptor` keeps one descriptor per tensor open."""
    cpu_pressure: float | None
    """Percent of the last ten seconds in which something on this machine waited for a core; None: not told."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One large container of Python objects that workers inherit."""

    path: str
    num_objects: int
    """Objects in it and in its elements, estimated from its first elements."""
    size_bytes: int
    """Bytes of these objects, without the contents of arrays and tensors."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Containers(Evidence):
    """Large containers of small objects in what workers get."""

    num_workers: int
    start_method: str | None
    containers: tuple[Container, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Growth(Evidence):
    """Descriptors and memory of one process over many reads, the samples themselves thrown away."""

    num_reads: int
    num_samples: int
    num_workers: int
    files: tuple[int, ...]
    """Open descriptors at the start, and after each quarter of the reads."""
    memory_bytes: tuple[int, ...]
    """Private memory at the same moments."""
    file_limit: int
    free_memory_bytes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pace(Evidence):
    """The loader walked through in one process and with its own workers, the batches thrown away."""

    num_batches: int | None
    """Of an epoch; None: not known."""
    num_workers: int
    prefetch_factor: int
    """Batches that each worker makes ahead; 0 without workers."""
    batch_bytes: int
    """Bytes of the tensors and arrays of a usual batch."""
    tensors_per_batch: int
    single_s: tuple[float, ...]
    """Seconds for each batch in one process, after the first."""
    single_cpu_share: float | None
    """Cores that its threads asked for (ran, or waited for one): near 1 it computes, near 0 it waits for something else."""
    worker_s: tuple[float, ...]
    """Seconds between batches with the loader's own workers, after those that were made ahead; empty without workers."""
    worker_first_s: float | None
    """Seconds to the first batch with workers."""
    worker_cpu_share: float | None
    """The same of the busiest worker while it made samples: well above 1 it has threads of its own at work."""
    single_cpu_s: float | None
    """Processor seconds of a usual batch in one process: no other program adds to them. None: not measured."""
    handover_cpu_s: float | None
    """Processor seconds that taking over a usual batch from a worker costs this process. None: not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPace(Evidence):
    """Samples prepared by one thread, and by two at the same time in one process."""

    runner: str
    """How the loader prepares samples: `threads`, or `host` (threads in one other process)."""
    num_threads: int
    num_samples: int
    """Prepared by each thread."""
    alone_share: float
    """Cores that one thread asked for: near 1 it computes, near 0 it waits."""
    gain: float
    """Processor time that two threads at once got, in times of what one got: near 2 they compute side by side, near 1
    they take turns, or others on the machine left them no second core."""
    spare_cores: float
    """Cores of the machine that stood idle while two threads worked; 0 where this process may use fewer than two."""
    together_share: float
    """Cores that two threads at once asked for: near 2 if each of them runs or waits for a core all the time, near 1 if they
    take turns."""
