"""Makes TARGET again as one rank of a distributed run would: in this process alone, or as one of a group.

Environment variables say the rank, torch.distributed answers accordingly, and the user's modules are executed anew, so
that a rank that is read on import is read again. Only for a child that ends afterwards: modules stay replaced.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from headrace.doctor.stacks import is_user_code
from headrace.doctor.subject.groups import split_up
from headrace.doctor.subject.handle import Subject
from headrace.doctor.subject.target import load_target

__all__ = ["Built", "as_rank", "base_seed", "in_worker", "joined", "load_again", "stand_alone"]


@contextlib.contextmanager
def as_rank(rank: int, world_size: int) -> Iterator[None]:
    """In this block, whoever asks is told that this is one rank of several; collectives do nothing.

    Args:
        rank: 0 up to, without, `world_size`.
        world_size: Ranks, all on this machine.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, _environment(rank, world_size)))
        for holder, name, answer in _answers(rank, world_size):
            if hasattr(holder, name):
                stack.enter_context(mock.patch.object(holder, name, answer))
        yield


def stand_alone() -> None:
    """From here on, a group that the user's code sets up where no launcher said a rank has one member: this process.

    For a child that examines what is otherwise started by torchrun. Where a rank is said, nothing is changed.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return
    begin = distributed.init_process_group

    def begin_alone(*args: Any, **options: Any) -> None:
        names_rank = "RANK" in os.environ or options.get("rank", -1) >= 0 or "store" in options
        if names_rank or options.get("init_method", "env://") not in {None, "env://"} or len(args) > 1:
            begin(*args, **options)
        elif not distributed.is_initialized():
            begin("gloo", store=distributed.HashStore(), rank=0, world_size=1)

    for holder in (distributed, sys.modules.get("torch.distributed.distributed_c10d")):
        if holder is not None:
            holder.init_process_group = begin_alone  # type: ignore[attr-defined]


@contextlib.contextmanager
def joined(rank: int, world_size: int, store: str, *, most_s: float) -> Iterator[None]:
    """In this block, this process is one rank of a group that all ranks have joined; collectives are real (gloo).

    A group that the user's code sets up is this one.

    Args:
        rank: 0 up to, without, `world_size`.
        world_size: Processes, all on this machine.
        store: Path of a file that is not there yet, over which they meet.
        most_s: Seconds after which a rank that waits for the others gives up, with an error.
    """
    distributed = importlib.import_module("torch.distributed")
    inner = importlib.import_module("torch.distributed.distributed_c10d")
    if distributed.is_initialized():  # TARGET was loaded in this process before, for no rank
        distributed.destroy_process_group()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, _environment(rank, world_size)))
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=world_size,
            timeout=dt.timedelta(seconds=most_s),
        )
        stack.callback(distributed.destroy_process_group)
        for holder in (distributed, inner):
            for name in ("init_process_group", "destroy_process_group"):
                stack.enter_context(mock.patch.object(holder, name, _saying(None)))
        stack.enter_context(mock.patch.object(importlib.import_module("torch.cuda"), "set_device", _saying(None)))
        yield


def _environment(rank: int, world_size: int) -> dict[str, str]:
    """What launchers tell their processes."""
    said = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": world_size,
        "LOCAL_WORLD_SIZE": world_size,
        "GROUP_RANK": 0,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": rank,
        "SLURM_NTASKS": world_size,
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": world_size,
    }
    return {name: str(value) for name, value in said.items()}


def _answers(rank: int, world_size: int) -> Iterator[tuple[Any, str, Any]]:
    """Functions of torch that ask for the rank, or that would wait for the others."""
    distributed = importlib.import_module("torch.distributed")
    inner = sys.modules.get("torch.distributed.distributed_c10d")
    told = {
        "is_available": True,
        "is_initialized": True,
        "is_torchelastic_launched": True,
        "get_rank": rank,
        "get_node_local_rank": rank,
        "get_world_size": world_size,
        "get_backend": "gloo",
    }
    waiting = ("init_process_group", "destroy_process_group", "barrier", "broadcast", "broadcast_object_list")
    told |= dict.fromkeys(waiting)
    for holder in filter(None, (distributed, inner)):
        yield from ((holder, name, _saying(answer)) for name, answer in told.items())
    yield importlib.import_module("torch.cuda"), "set_device", _saying(None)


def _saying(answer: Any) -> Callable[..., Any]:
    """A function that takes whatever it is given."""
    return lambda *_, **__: answer


class Built:
    """Notes the DataLoaders that are made in a block: (loader, whether a sampler was given), in order."""

    def __init__(self) -> None:
        self.loaders: list[tuple[Any, bool]] = []

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Listens while the user's code makes its loaders."""
        kind = importlib.import_module("torch.utils.data").DataLoader
        make = kind.__init__

        def noted(loader: Any, *args: Any, **options: Any) -> None:
            make(loader, *args, **options)
            is_own = any(options.get(name) is not None for name in ("sampler", "batch_sampler")) or len(args) > 3
            self.loaders.append((loader, is_own))

        with mock.patch.object(kind, "__init__", noted):
            yield


def load_again(spec: str, split: str) -> tuple[Subject, Built]:
    """Executes the user's modules anew and returns the loader that TARGET then gives.

    Args:
        spec: TARGET.
        split: Name of the loader, where TARGET has several.
    """
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and name != "__main__" and is_user_code(path):
            del sys.modules[name]
    built = Built()
    with built.noting():
        groups = split_up(load_target(spec))
    subjects = {name: Subject(loader) for name, loader in groups.items()}
    for subject in subjects.values():
        subject.siblings = subjects
    return subjects[split] if split in subjects else next(iter(subjects.values())), built


def base_seed(loader: Any) -> int:
    """Returns the seed that an epoch of this loader would give to its workers, drawn as torch draws it."""
    torch = importlib.import_module("torch")
    generator = getattr(loader, "generator", None)
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


@contextlib.contextmanager
def in_worker(loader: Any, seed: int, worker: int = 0) -> Iterator[None]:
    """In this block the global generators and `get_worker_info` are those of a worker of the loader.

    Seeds as torch's workers do (Python, torch, numpy), then calls the loader's own worker_init_fn.
    """
    import random

    torch = importlib.import_module("torch")
    workers: Any = importlib.import_module("torch.utils.data._utils.worker")
    own = seed + worker
    random.seed(own)
    torch.manual_seed(own)
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is not None and hasattr(workers, "_generate_state"):
        numpy_random.seed(workers._generate_state(seed, worker))
    count = max(1, int(getattr(loader, "num_workers", 1)))
    info = workers.WorkerInfo(id=worker, num_workers=count, seed=own, dataset=loader.dataset)
    with mock.patch.object(workers, "_worker_info", info):
        init = getattr(loader, "worker_init_fn", None)
        if init is not None:
            init(worker)
        yield
