"""From losses to parameters: accumulation, mixed precision, clipping, optimizer, schedule, clearing, in that order."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

__all__ = ["PRECISIONS", "Updates"]

PRECISIONS = {"full": None, "bf16": "bfloat16", "fp16": "float16"}


class Updates:
    """Turns the losses of a run into optimizer steps.

    Args:
        models: What is trained.
        optimizers: All of them take a step at the same time.
        schedulers: Stepped after each optimizer step.
        accumulate: Batches per optimizer step. Each loss counts 1/accumulate; at the end of an epoch, with fewer batches
            left, 1/their number, so that a step is always the mean over its batches.
        clip: Largest norm of all gradients together; None: not clipped.
        precision: "full", "bf16" or "fp16": autocast around the body; fp16 with a GradScaler.
        device_type: Where the body computes, for autocast.
        scaler: The GradScaler of "fp16"; None without.
    """

    def __init__(
        self,
        models: Mapping[str, torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer],
        schedulers: Sequence[Any],
        *,
        accumulate: int,
        clip: float | None,
        precision: str,
        device_type: str,
        scaler: Any,
    ) -> None:
        self._models = dict(models)
        self._optimizers = list(optimizers)
        self._schedulers = list(schedulers)
        self.accumulate = accumulate
        self._clip = clip
        self._precision = PRECISIONS[precision]
        self._device_type = device_type
        self._scaler = scaler
        self.state: dict[str, Any] = {"pending": 0, "sums": {}}
        """Batches whose gradients wait for the optimizer step, and sums of their values; saved with the run."""
        self.values: dict[str, float] = {}
        """Means over the batches of the optimizer step that was taken last."""
        self._within: contextlib.ExitStack | None = None
        self._is_in_body = self._is_ours = False
        mine = weakref.ref(self)  # the optimizer must not keep a run alive that was given up

        def before_step(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:  # noqa: ARG001 - torch's signature
            if (here := mine()) is not None:
                here.refuse_foreign()

        self._hooks = [one.register_step_pre_hook(before_step) for one in self._optimizers]
        self.on_step: Callable[[], None] = lambda: None
        """Called after each optimizer step."""

    def close(self) -> None:
        """Takes the hooks away."""
        for hook in self._hooks:
            hook.remove()

    @property
    def pending(self) -> int:
        """Batches whose gradients wait for the optimizer step."""
        return int(self.state["pending"])

    # Around the body.

    def enter(self, *, is_trial: bool = False) -> None:
        """Begins a body: autocast, and no exchange of gradients between ranks before the last batch of a step.

        Args:
            is_trial: Each batch is a step of its own.
        """
        import torch

        self._is_in_body = True
        self._within = contextlib.ExitStack()
        if not is_trial and self.pending + 1 < self.accumulate:
            for model in self._models.values():
                no_sync = getattr(model, "no_sync", None)
                if no_sync is not None:
                    self._within.enter_context(no_sync())
        if self._precision is not None:
            dtype = getattr(torch, self._precision)
            self._within.enter_context(torch.autocast(self._device_type, dtype=dtype))

    def leave(self) -> None:
        """Ends the body."""
        self._is_in_body = False
        if self._within is not None:
            self._within.close()
            self._within = None

    # Losses.

    def add(self, loss: torch.Tensor, values: Mapping[str, float]) -> None:
        """Takes the loss of one batch; with the last one of a step, takes the step."""
        loss = loss / self.accumulate
        self._backward(loss if self._scaler is None else self._scaler.scale(loss))
        self.state["pending"] = self.pending + 1
        for name, value in values.items():
            self.state["sums"][name] = self.state["sums"].get(name, 0.0) + value
        if self.pending >= self.accumulate:
            self._step()

    def try_out(self, loss: torch.Tensor, *, takes_step: bool) -> None:
        """Backward and, if told to, a step: without accumulation, schedule, values and books."""
        import torch

        self._backward(loss)
        if takes_step:
            if self._clip is not None:
                torch.nn.utils.clip_grad_norm_(list(self._parameters()), self._clip)
            with self._ours():
                for optimizer in self._optimizers:
                    optimizer.step()
                    optimizer.zero_grad()

    def _backward(self, loss: Any) -> None:
        """Runs it where the body's contexts still hold, but for autocast, in which no gradient should be computed."""
        import torch

        within, self._within = self._within, None
        with within or contextlib.nullcontext(), torch.autocast(self._device_type, enabled=False):
            loss.backward()

    @contextlib.contextmanager
    def _ours(self) -> Iterator[None]:
        """Within the block optimizers are stepped by the loop and not by the body."""
        self._is_ours = True
        try:
            yield
        finally:
            self._is_ours = False

    def use_initial_rates(self) -> None:
        """Sets the learning rates that schedules begin to lower, or to warm up to."""
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group.get("initial_lr", group["lr"])

    def finish(self) -> None:
        """Takes the step of a begun accumulation: the epoch is over."""
        if not self.pending:
            return
        import torch

        part = self.accumulate / self.pending
        # Ranks exchange gradients with the last batch of a full step, and that one did not come.
        ranks = torch.distributed if any(hasattr(model, "no_sync") for model in self._models.values()) else None
        with torch.no_grad():
            for parameter in self._parameters():
                if parameter.grad is not None:
                    if ranks is not None:
                        ranks.all_reduce(parameter.grad)
                        parameter.grad.div_(ranks.get_world_size())
                    parameter.grad.mul_(part)
        self._step()

    def _parameters(self) -> Iterator[torch.nn.Parameter]:
        return (one for optimizer in self._optimizers for group in optimizer.param_groups for one in group["params"])

    def _step(self) -> None:
        import torch

        number, self.state["pending"] = self.pending, 0
        self.values = {name: total / number for name, total in self.state["sums"].items()}
        self.state["sums"] = {}
        if self._clip is not None:
            if self._scaler is not None:
                for optimizer in self._optimizers:
                    self._scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(list(self._parameters()), self._clip)
            self.values["grad_norm"] = float(norm)
        before = None if self._scaler is None else self._scaler.get_scale()
        with self._ours():
            for optimizer in self._optimizers:
                optimizer.step() if self._scaler is None else self._scaler.step(optimizer)
        is_skipped = False
        if self._scaler is not None:
            self._scaler.update()
            is_skipped = self._scaler.get_scale() < before
        # A step that the scaler left out is none for the schedule either.
        for scheduler in () if is_skipped else self._schedulers:
            scheduler.step()
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        self.values["lr"] = float(self._optimizers[0].param_groups[0]["lr"])
        self.on_step()

    def refuse_foreign(self) -> None:
        """Refuses a step of an optimizer that the body takes itself."""
        if self._is_in_body and not self._is_ours:
            raise ConfigurationError(
                "optimizer.step() was called in the body of the loop, and step.update(loss) calls it too",
                why="each batch would be learned from twice",
                do="leave backward, step, scheduler and zero_grad to step.update(loss), or use hr.Checkpointer in a loop of your own",
            )
