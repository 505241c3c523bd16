"""Writing beside the training: one checkpoint at a time, from copies, in a thread of its own."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Writer", "copied"]


def copied(value: Any) -> Any:
    """Returns a nested value whose tensors are copies in main memory; the rest is shared, or copied where it may change.

    Two references to one tensor stay two references to one copy.
    """
    import torch

    copies: dict[Any, Any] = {}
    made = _copied(value, copies)
    if any(copy.is_pinned() for copy in copies.values()):
        torch.cuda.synchronize()  # these copies were only ordered
    return made


def _copied(value: Any, copies: dict[Any, Any]) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        # Memory, and not the object, is what makes two the same: state_dict() returns a new object at each call.
        same = (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype, value.device)
        if not value.numel():
            return value.detach().clone()
        if same not in copies:
            copies[same] = _copy_of(value.detach())
        return copies[same]
    if isinstance(value, dict):
        made = copy.copy(value)  # keeps OrderedDict and Counter
        for name, item in value.items():
            made[name] = _copied(item, copies)
        return made
    if type(value) in {list, tuple}:
        return type(value)(_copied(item, copies) for item in value)
    return copy.deepcopy(value)


def _copy_of(tensor: Any) -> Any:
    import torch

    if tensor.device.type == "cpu":
        return tensor.clone()
    if tensor.is_cuda:
        return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)
    return tensor.cpu()


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
