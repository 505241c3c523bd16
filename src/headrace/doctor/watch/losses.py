"""Watches the values from which backward passes begin: the first that is not finite, and the samples of its batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.training import LossTrace
from headrace.doctor.watch.frames import user_place
from headrace.doctor.watch.taps import listen
from headrace.doctor.watch.timeline import Timeline

__all__ = ["LossObserver"]

DEVICE_EVERY = 50
"""Backward passes per look at a loss that is not on the CPU: a look waits for the device."""
MOST_IDS = 4096
"""Sample numbers kept of the batch: no batch of samples is larger."""


class LossObserver:
    """Observes `backward`. Costs about two microseconds for a loss on the CPU."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._num_seen = self._num_read = self._num_nonfinite = 0
        self._first: tuple[int, str, str | None] | None = None
        self._ids: tuple[int, ...] = ()
        self._is_pending = self._was_stepped_on = False
        self._is_last_finite = True
        self._last_finite: float | None = None
        self._is_scaled = False
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Sets the hooks."""
        import torch
        from torch.optim import optimizer as hooks

        self._undo = [
            listen(torch.autograd, "backward", before=self._goes_backward),
            hooks.register_optimizer_step_post_hook(lambda *_: self._stepped()).remove,
            listen(torch.optim.Optimizer, "zero_grad", before=self._cleared),
        ]
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
        if scaler is not None:
            self._undo.append(listen(scaler, "scale", before=self._scales))

    def uninstall(self) -> None:
        """Takes the hooks away; what was seen stays."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def seen(self) -> tuple[Evidence, ...]:
        """Returns a LossTrace, once a loss was looked at."""
        if not self._num_read:
            return ()
        return (
            LossTrace(
                num_read=self._num_read,
                num_nonfinite=self._num_nonfinite,
                first=self._first,
                sample_ids=self._ids,
                was_stepped_on=self._was_stepped_on,
                is_last_finite=self._is_last_finite,
                last_finite=self._last_finite,
            ),
        )

    def _scales(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        # The scaled loss may overflow, which the scaler notices and mends: the loss itself is looked at instead.
        self._is_scaled = True
        self._look(args[1])

    def _goes_backward(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if self._is_scaled:
            self._is_scaled = False
        else:
            self._look(args[0])

    def _look(self, root: Any) -> None:
        if isinstance(root, (list, tuple)) and len(root) == 1:
            root = root[0]
        if not hasattr(root, "numel") or root.numel() != 1 or not root.is_floating_point():
            return
        self._num_seen += 1
        if root.device.type != "cpu" and self._num_seen % DEVICE_EVERY:
            return
        value = root.item()
        self._num_read += 1
        self._is_last_finite = math.isfinite(value)
        if self._is_last_finite:
            if self._first is None:
                self._last_finite = value
            return
        self._num_nonfinite += 1
        if self._first is None:
            self._first = (self._timeline.num_steps, "nan" if math.isnan(value) else "inf", user_place())
            self._ids = (self._timeline.last_ids or ())[:MOST_IDS]
        self._is_pending = True

    def _cleared(self, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        self._is_pending = False

    def _stepped(self) -> None:
        self._was_stepped_on |= self._is_pending
        self._is_pending = False
