"""From losses to parameters: accumulation, mixed precision, clipping, optimizer, schedule, clearing, in that order."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

__all__ = ["PRECISIONS", "Updates"]

PRECISIONS = {"full": None, "bf16": "bfloat16", "fp16": "float16"}
_Mark = int | None
"""How often a gradient was written to; None: there is none. Its identity would not do: FSDP makes views of it anew."""
LEAVE_IT = (
    "leave backward, step, scheduler and zero_grad to step.update(loss), or use hr.Checkpointer in a loop of your own"
)


class Updates:
    """Turns the losses of a run into optimizer steps.

    Args:
        models: What is trained.
        optimizers: All of them take a step at the same time.
        schedulers: Stepped after each optimizer step.
        other_schedulers: Stepped by the loop at other times; watched, so that the body does not.
        accumulate: Batches per optimizer step. Each loss counts 1/accumulate; at the end of an epoch, with fewer batches
            left, 1/their number, so that a step is always the mean over its batches.
        clip: Largest norm of all gradients together; None: not clipped.
        precision: "full", "bf16" or "fp16": autocast around the body; fp16 with a GradScaler.

    Raises:
        ConfigurationError: an argument cannot work; an optimizer computes the loss itself, several times a step.
    """

    def __init__(
        self,
        models: Mapping[str, torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer],
        schedulers: Sequence[Any],
        other_schedulers: Sequence[Any] = (),
        *,
        accumulate: int,
        clip: float | None,
        precision: str,
    ) -> None:
        if accumulate < 1:
            raise ConfigurationError(f"accumulate={accumulate}: batches per optimizer step, 1 or more")
        if clip is not None and clip <= 0:
            raise ConfigurationError(f"clip={clip}: the largest norm of all gradients, more than 0")
        if precision not in PRECISIONS:
            raise ConfigurationError(f"precision={precision!r}", do=f"one of {', '.join(map(repr, PRECISIONS))}")
        for one in optimizers:
            _refuse_closures(one)
        self._models = dict(models)
        self._optimizers = list(optimizers)
        self._schedulers, self._other_schedulers = list(schedulers), list(other_schedulers)
        self.accumulate = accumulate
        self._clip = clip
        self._precision = PRECISIONS[precision]
        self._device_type = next(
            (one.device.type for model in self._models.values() for one in model.parameters()), "cpu"
        )
        self.scaler = _scaler_for(self._device_type) if precision == "fp16" else None
        """The GradScaler of "fp16"; None without."""
        self.state: dict[str, Any] = {"pending": 0, "sums": {}}
        """Batches whose gradients wait for the optimizer step, and sums of their values; saved with the run."""
        self.values: dict[str, float] = {}
        """Means over the batches of the optimizer step that was taken last."""
        self._within: contextlib.ExitStack | None = None
        self._is_in_body = self._is_ours = False
        self._gradients: dict[int, _Mark] | None = None
        self._schedules: list[Any] = []
        mine = weakref.ref(self)  # the optimizer must not keep a run alive that was given up

        def before_step(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:  # noqa: ARG001 - torch's signature
            if (here := mine()) is not None:
                here.refuse_foreign_step()

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
        self._schedules = self._marks_of_schedules()
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
        """Takes the loss of one batch; with the last one of a step, takes the step.

        Raises:
            ConfigurationError: the body has changed gradients or schedules itself. Nothing was done yet.
        """
        self.refuse_foreign_schedule()
        self._refuse_foreign_gradients()
        loss = loss / self.accumulate
        self._backward(loss if self.scaler is None else self.scaler.scale(loss))
        self.state["pending"] = self.pending + 1
        for name, value in values.items():
            self.state["sums"][name] = self.state["sums"].get(name, 0.0) + value
        if self.pending >= self.accumulate:
            self._step()
        else:
            self._gradients = self._marks()

    def try_out(self, loss: torch.Tensor, *, takes_step: bool) -> None:
        """Backward and, if told to, a step: without accumulation, schedule, values and books."""
        import torch

        self.refuse_foreign_schedule()
        self._refuse_foreign_gradients(is_trial=True)
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

        self._refuse_foreign_gradients()
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
            if self.scaler is not None:
                for optimizer in self._optimizers:
                    self.scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(list(self._parameters()), self._clip)
            self.values["grad_norm"] = float(norm)
        before = None if self.scaler is None else self.scaler.get_scale()
        with self._ours():
            for optimizer in self._optimizers:
                optimizer.step() if self.scaler is None else self.scaler.step(optimizer)
        is_skipped = False
        if self.scaler is not None:
            self.scaler.update()
            is_skipped = self.scaler.get_scale() < before
        # A step that the scaler left out is none for the schedule either.
        for scheduler in () if is_skipped else self._schedulers:
            scheduler.step()
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        self._gradients, self._schedules = None, self._marks_of_schedules()
        self.values["lr"] = float(self._optimizers[0].param_groups[0]["lr"])
        self.on_step()

    # What is the loop's, and was done by the body.

    def begin(self) -> None:
        """A loop over the steps begins: whatever was done to gradients before it was not done in its body."""
        self._gradients = None

    def refuse_foreign_step(self) -> None:
        """Refuses a step of an optimizer that the body takes itself."""
        if self._is_in_body and not self._is_ours:
            raise ConfigurationError(
                "optimizer.step() was called in the body of the loop, and step.update(loss) calls it too",
                why="each batch would be learned from twice",
                do=LEAVE_IT,
            )

    def refuse_foreign_schedule(self) -> None:
        """Refuses a step of a schedule that the body has taken since its beginning, or since the step of the loop.

        Read off the counters of the schedules: some microseconds, and nothing of theirs is replaced. Schedules of one's own
        that count nothing are not seen, and those that the loop was not given are the body's.
        """
        for before, after, one in zip(self._schedules, self._marks_of_schedules(), self._all_schedulers(), strict=True):
            if before != after:
                raise ConfigurationError(
                    f"scheduler.step() of {type(one).__name__} was called in the body of the loop, and the loop calls it too",
                    why="learning rates would change twice as fast as planned",
                    do="leave it to the loop: scheduler= is stepped after each optimizer step, epoch_scheduler= after each epoch",
                )

    def _refuse_foreign_gradients(self, *, is_trial: bool = False) -> None:
        """Refuses gradients that are not what the loop left: the next backward would add to them.

        All parameters are looked at, since a backward of the body may reach a few of them only. Where there should be none,
        as at the beginning of each step, that takes 0.1 us a tensor; between the batches of an accumulation 1 us, looking and
        noting. Forward and backward take some 100 us a tensor (100 linear layers of 64, one thread).
        """
        if is_trial or not self.pending:
            for parameter in self._parameters():
                # Zeros are as good as none: optimizers of one's own, and zero_grad(set_to_none=False), clear so.
                if parameter.grad is not None and not _is_zero(parameter.grad):
                    raise self._foreign_gradient(parameter, is_first=True)
        elif (
            self._gradients is not None
        ):  # None: brought back between two batches of a step, and what was there is not known
            marks = self._marks()
            for parameter in self._parameters():
                here, there = marks[id(parameter)], self._gradients.get(id(parameter))
                if here != there and not (there is None and _is_zero(parameter.grad)):
                    raise self._foreign_gradient(parameter, is_first=False)

    def _foreign_gradient(self, parameter: torch.nn.Parameter, *, is_first: bool) -> ConfigurationError:
        name = next(
            (name for name, one in self._named_parameters() if one is parameter), "a parameter of the optimizer"
        )
        if is_first:
            return ConfigurationError(
                f"{name} has a gradient already, before step.update(loss) has computed any",
                why="loss.backward() was called in the body of the loop, or before it; the gradient of step.update(loss) "
                "would be added, so the batch would count twice",
                do=(
                    LEAVE_IT,
                    "torch.autograd.grad(...) for gradients of your own, or optimizer.zero_grad() when they were used",
                ),
            )
        return ConfigurationError(
            f"the gradient of {name} was changed between two batches of one optimizer step",
            why=f"backward, zero_grad or clipping was called in the body of the loop, while the gradients of "
            f"{self.pending} of {self.accumulate} batches (accumulate={self.accumulate}) waited for the others",
            do=LEAVE_IT,
        )

    def _named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        return (
            (f"{prefix}.{name}".lstrip("."), one)
            for prefix, model in self._models.items()
            for name, one in model.named_parameters()
        )

    def _marks(self) -> dict[int, _Mark]:
        return {id(one): None if (grad := one.grad) is None else grad._version for one in self._parameters()}

    def _all_schedulers(self) -> list[Any]:
        return [*self._schedulers, *self._other_schedulers]

    def _marks_of_schedules(self) -> list[Any]:
        return [(getattr(one, "last_epoch", None), getattr(one, "_step_count", None)) for one in self._all_schedulers()]


def _is_zero(gradient: Any) -> bool:
    return not bool((gradient.coalesce().values() if gradient.is_sparse else gradient).any())


def _refuse_closures(optimizer: torch.optim.Optimizer) -> None:
    try:
        closure = inspect.signature(optimizer.step).parameters.get("closure")
    except (TypeError, ValueError):  # not written in Python
        return
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ConfigurationError(
            f"{type(optimizer).__name__} computes the loss itself, several times a step: its step() needs a closure",
            why="the body of the loop computes one loss for each batch",
            do="hr.Checkpointer in a loop of your own: optimizer.step(closure)",
        )


def _scaler_for(device_type: str) -> Any:
    import torch

    return torch.amp.GradScaler(device_type)
