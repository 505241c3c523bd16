"""Writing beside the training: one checkpoint at a time, from copies, in a thread of its own."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Copier", "Writer", "copied"]


def copied(value: Any) -> Any:
    """Returns a nested value whose tensors are copies in main memory; the rest is shared, or copied where it may change.

    Two references to one tensor stay two references to one copy.
    """
    return Copier().copied(value)


class Copier:
    """Copies states into memory that it keeps: the second copy of a run needs no new pages, which cost more than the bytes.

    A copy is valid until the next one is made.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, list[Any]] = {}
        """Memory by shape, strides, type and whether it is pinned."""

    def copied(self, value: Any) -> Any:
        """Returns a copy as `copied` does, in the memory of the one before where it fits."""
        import torch

        free = {key: list(buffers) for key, buffers in self._kept.items()}
        copies: dict[Any, Any] = {}
        made = self._copied(value, copies, free)
        self._kept = {}
        for tensor in copies.values():
            self._kept.setdefault(_form_of(tensor, is_pinned=tensor.is_pinned()), []).append(tensor)
        if any(form[-1] for form in self._kept):
            torch.cuda.synchronize()  # copies to pinned memory were only ordered
        return made

    def _copied(self, value: Any, copies: dict[Any, Any], free: dict[Any, list[Any]]) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            # Memory, and not the object, is what makes two the same: state_dict() returns a new object at each call.
            same = (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype, value.device)
            if not value.numel() or value.layout is not torch.strided:
                return value.detach().clone()
            if same not in copies:
                form = _form_of(value, is_pinned=value.is_cuda)
                copies[same] = _copy_into(free[form].pop() if free.get(form) else None, value.detach())
            return copies[same]
        if isinstance(value, dict):
            made = copy.copy(value)  # keeps OrderedDict and Counter
            for name, item in value.items():
                made[name] = self._copied(item, copies, free)
            return made
        if type(value) in {list, tuple}:
            return type(value)(self._copied(item, copies, free) for item in value)
        return copy.deepcopy(value)


def _form_of(tensor: Any, *, is_pinned: bool) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, is_pinned


def _copy_into(buffer: Any, tensor: Any) -> Any:
    """The tensor's copy in main memory: in the buffer, or in new memory of its form."""
    import torch

    if buffer is None:
        buffer = torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)
        if buffer.stride() != tensor.stride():  # overlapping or with gaps: no form of its own
            return tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()
    return buffer.copy_(tensor, non_blocking=tensor.is_cuda)


class Writer:
    """Runs one job at a time in a thread; the next one waits for it."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Waits for the job before, and starts this one."""
        self.wait()

        def run() -> None:
            try:
                job()
            except BaseException as error:
                self._failure = error

        # Not a daemon: a program that ends waits for the checkpoint that is being written.
        self._thread = threading.Thread(target=run, name="headrace-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Returns when nothing is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def failure(self) -> BaseException | None:
        """Returns what the last job that ended failed with, once; None: it did not, or is not at its end."""
        if self._thread is not None and self._thread.is_alive():
            return None
        failure, self._failure = self._failure, None
        return failure
