"""One step of a training loop: what the user's body gets, and what `update` does with its loss, in the one right order."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from headrace.engine.batch import BatchInfo
from headrace.errors import ConfigurationError, NonFiniteLoss, SampleId

if TYPE_CHECKING:
    import torch

__all__ = ["Step"]


class TakesLoss(Protocol):
    """What the loss of a body is handed to."""

    def add(self, loss: torch.Tensor, values: Mapping[str, float]) -> None:
        """Takes the loss of one batch, and further values of it."""
        ...


class Step:
    """One batch and its number. The body of the loop computes a loss and hands it to `update`, once."""

    def __init__(
        self,
        updates: TakesLoss,
        batch: Any,
        *,
        epoch: int,
        number: int,
        info: BatchInfo | None,
        keep: Callable[[Step, str], pathlib.Path],
        is_trial: bool = False,
    ) -> None:
        self.batch = batch
        """What the loader delivered."""
        self.epoch = epoch
        """Epoch, from 0."""
        self.number = number
        """Optimizer steps done before this one."""
        self._info = info
        self.is_trial = is_trial
        """Whether this step is one of the look at a run before it begins: all that it changes is put back."""
        self.is_done = False
        """Whether `update` or `skip` was called."""
        self._updates = updates
        self._keep = keep

    @property
    def ids(self) -> tuple[SampleId, ...] | None:
        """Identities of the samples; None if the loader does not know them. Made when they are first asked for."""
        return None if self._info is None else tuple(self._info.sample_ids)

    def update(self, loss: torch.Tensor, **values: float) -> None:
        """Backward; and, when the accumulation is full: clip, optimizer step, scheduler step, gradients cleared.

        Args:
            loss: A single number that depends on the model: the mean over the batch.
            values: Further numbers of this step for the trackers.

        Raises:
            ConfigurationError: called twice, or without gradients; the loss is no such number; the body has called
                backward, zero_grad or the steps of optimizer or schedule itself.
            NonFiniteLoss: it is NaN or infinite; names the samples of the batch. Nothing was changed.
        """
        self._once("update")
        if getattr(loss, "numel", lambda: 0)() != 1:
            shape = tuple(loss.shape) if hasattr(loss, "shape") else type(loss).__name__
            raise ConfigurationError(f"step.update(loss): the loss is {shape}, not a single number", do="loss.mean()")
        self._refuse_constant(loss)
        value = float(loss.detach())
        if not math.isfinite(value):
            error = self._not_finite(value)
            error.add_note(f"the batch is kept in {self._keep(self, error.what)}")
            raise error
        self._updates.add(loss, {"loss": value, **values})

    def skip(self) -> None:
        """Leaves this batch out: no gradient comes of it."""
        self._once("skip")

    @staticmethod
    def _refuse_constant(loss: torch.Tensor) -> None:
        """Refuses a loss from which no gradient comes to the model, and says why none does."""
        import torch

        if not torch.is_grad_enabled():
            raise ConfigurationError(
                "step.update(loss) was called while gradients are turned off: under torch.no_grad() or inference_mode()",
                why="nothing that is computed there can be differentiated, so the model would learn nothing",
                do="compute the loss and call step.update(loss) outside of it; it is for evaluations",
            )
        if not loss.requires_grad:
            raise ConfigurationError(
                "step.update(loss): the loss does not depend on any parameter that is trained",
                why="it was detached, computed under no_grad, or every parameter is frozen",
                do="hand over the loss as it was computed, without .detach(), .item() or .data",
            )
        if loss.grad_fn is None and not isinstance(loss, torch.nn.Parameter):
            raise ConfigurationError(
                "step.update(loss): the loss was not computed of anything (it has no grad_fn)",
                why="torch.tensor(..., requires_grad=True) begins anew: no gradient goes on to the model from there",
                do="hand over the loss as it was computed",
            )

    def _not_finite(self, value: float) -> NonFiniteLoss:
        ids = self.ids or ()
        shown = ", ".join(map(str, ids[:8])) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        return NonFiniteLoss(
            f"the loss of step {self.number:,} (epoch {self.epoch}) is {value}" + (f"; samples {shown}" if ids else ""),
            why="a sample that is not finite itself, a learning rate that is too high, or a division by nothing",
            do="headrace diagnose TARGET    looks for samples that are not finite",
        )

    def _once(self, word: str) -> None:
        if self.is_done:
            raise ConfigurationError(f"step.{word}() was called twice for one batch", do="one update or skip per step")
        self.is_done = True
