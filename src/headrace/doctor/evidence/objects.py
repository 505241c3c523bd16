"""What the loader's parts hold, whether they can be sent to a worker, and what their source says."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence

__all__ = ["Handle", "HeldObjects", "PartPickle", "PartPickles", "SourceLine", "SourceLines", "ThreadHeld"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """One open handle that a part of the loader holds before any worker is started."""

    path: str
    """How it is reached: `dataset.file`."""
    kind: str
    """Its class: `h5py.File`, `sqlite3.Connection`, `zipfile.ZipFile`, `open file`, ..."""
    file: str | None
    """What it is open on; None: not known."""
    is_used: bool
    """True if preparing a sample uses it: its file position moved, or the code that prepares samples names it."""
    is_replaced: bool
    """True if a worker has another one in its place once it has been set up and has prepared a sample."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHeld:
    """A thread, a pool with running threads, or a lock that is held, reachable from a part of the loader."""

    path: str
    kind: str
    """`thread`, `thread pool`, `held lock`."""
    name: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeldObjects(Evidence):
    """What data set, transforms, collate function and worker_init_fn hold that does not survive the way into a worker."""

    num_workers: int
    start_method: str | None
    handles: tuple[Handle, ...] = ()
    threads: tuple[ThreadHeld, ...] = ()
    device_tensors: tuple[tuple[str, str], ...] = ()
    """(path, device) of tensors that are not on the CPU."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartPickle:
    """One part of the loader, pickled apart from the others."""

    part: str
    """`dataset`, `collate_fn`, `worker_init_fn`."""
    size_bytes: int | None
    """Size of the pickle; None: it cannot be pickled."""
    wall_s: float
    """Seconds that pickling and unpickling took together."""
    culprit: str | None = None
    """Path of the innermost object that cannot be pickled."""
    culprit_kind: str | None = None
    """What it is: `a lambda`, `a function defined inside another`, the name of its class."""
    error: str | None = None
    """What pickling said."""
    where: str | None = None
    """`file:line` of the culprit, if it is a function or a class of the user's."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartPickles(Evidence):
    """Whether, and at what price, the loader's parts travel to a worker that is not a fork."""

    num_workers: int
    start_method: str | None
    persistent_workers: bool
    parts: tuple[PartPickle, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """One line of the user's source that a rule may care about."""

    topic: str
    """`device-in-worker`: moves data to an accelerator in code that workers run; `unguarded-loop`: a loader with workers
    is walked through while its module is imported; `non-blocking`: asks for a copy that does not block."""
    where: str
    """`file:line`."""
    text: str
    """What stands there, shortened: `images.cuda()`."""
    function: str | None = None
    """Name of the function around it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SourceLines(Evidence):
    """What the user's files say, without running them."""

    num_workers: int
    start_method: str | None
    pin_memory: bool
    num_files: int
    lines: tuple[SourceLine, ...] = ()

    def about(self, topic: str) -> tuple[SourceLine, ...]:
        """Returns the lines of one topic."""
        return tuple(line for line in self.lines if line.topic == topic)
