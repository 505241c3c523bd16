"""Watches optimizers: their steps, whether the gradients of each step were cleared since the one before, and where.

Whether gradients were cleared is read off the gradients themselves, so it does not matter who cleared them and how:
`zero_grad` of the optimizer, of a module, of another optimizer over the same parameters, `grad = None`, `grad.zero_()`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.training import OptimizerTrace, TrainingTrace
from headrace.doctor.watch.frames import user_place
from headrace.doctor.watch.taps import listen, quietly
from headrace.doctor.watch.timeline import Timeline

__all__ = ["TrainingObserver"]

NUM_WATCHED = 3
"""Parameters of an optimizer whose gradients are looked at: one may be out of use in a step, three seldom are."""
MOST_DEVICE_READS = 64
"""Looks at values on another device than the CPU, each of which waits for it; only loops that clear by hand need one."""


class _Optimizer:
    """What is known of one optimizer. Parameters are held weakly."""

    def __init__(self, number: int, where: str | None, kind: str) -> None:
        self.number, self.where, self.kind = number, where, kind
        self.num_steps = self.num_clears = self.num_used = self.num_without = 0
        self.num_cleared_before_step = self.num_discarded = self.num_device_reads = 0
        self.step_place: str | None = None
        self.clear_place: str | None = None
        self.num_parameters = 0
        self.is_clear = True
        """True if the gradients were cleared since the last step."""
        self.num_backwards = 0
        """Backward passes since the last step or clearing."""
        self.cleared_after_backward = False
        """True if the last clearing threw away what a backward pass had left, and none followed."""
        self.num_pending = 0
        """Batches since the last step whose gradients were thrown away."""
        self.backward_batch = 0
        """Number of the batch of the last backward pass."""
        self.last_discarded = -1
        """Number of the batch whose gradients were thrown away last."""
        self.watched: list[tuple[weakref.ref[Any], int, int]] = []
        """(parameter, identity of its gradient at the last step, version of that gradient)."""
        self.had_gradient = False

    def trace(self) -> OptimizerTrace:
        return OptimizerTrace(
            number=self.number,
            where=self.where,
            kind=self.kind,
            num_steps=self.num_steps,
            num_clears=self.num_clears,
            num_steps_on_used_gradients=self.num_used,
            num_steps_without_gradient=self.num_without,
            num_cleared_before_step=self.num_cleared_before_step,
            num_discarded=self.num_discarded,
            num_parameters=self.num_parameters,
            step_place=self.step_place,
            clear_place=self.clear_place,
        )


class TrainingObserver:
    """Observes every `torch.optim.Optimizer`. Costs a few microseconds per step and optimizer."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._optimizers: dict[int, tuple[weakref.ref[Any], _Optimizer]] = {}
        self._all: list[_Optimizer] = []
        self._stepping: list[int] = []
        """Optimizers whose `step` runs, outermost first: some wrap another one."""
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Sets the hooks."""
        import torch
        from torch.optim import optimizer as hooks

        self._undo = [
            listen(torch.optim.Optimizer, "__init__", after=self._made),
            listen(torch.optim.Optimizer, "zero_grad", before=self._clears),
            listen(torch.nn.Module, "zero_grad", before=self._module_clears),
            listen(torch.autograd, "backward", before=self._goes_backward),
            listen(torch.autograd, "grad", before=self._differentiates),
            hooks.register_optimizer_step_pre_hook(quietly(self._steps)).remove,
            hooks.register_optimizer_step_post_hook(quietly(self._stepped)).remove,
        ]
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
        if scaler is not None:
            self._undo.append(listen(scaler, "step", before=self._scaler_steps))

    def uninstall(self) -> None:
        """Takes the hooks away; what was seen stays."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def seen(self) -> tuple[Evidence, ...]:
        """Returns a TrainingTrace without schedules, which another observer knows."""
        return (
            TrainingTrace(
                num_steps=self._timeline.num_steps,
                num_backwards=self._timeline.num_backwards,
                optimizers=tuple(known.trace() for known in self._all if known.num_steps),
            ),
        )

    # What happens, in the order of a training step.

    def _made(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        self._known(args[0])

    def _known(self, optimizer: Any) -> _Optimizer:
        found = self._optimizers.get(id(optimizer))
        if found is not None and found[0]() is optimizer:
            return found[1]
        known = _Optimizer(len(self._all), user_place(), type(optimizer).__name__)
        self._optimizers[id(optimizer)] = (weakref.ref(optimizer), known)
        self._all.append(known)
        return known

    def _clears(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        known = self._known(args[0])
        known.clear_place = known.clear_place or user_place()
        self._note_clear(known)

    def _module_clears(self, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        # Whose gradients they were shows in the gradients; the place is worth keeping.
        for known in self._all:
            if known.num_backwards and not known.cleared_after_backward:
                known.clear_place = known.clear_place or user_place()

    def _note_clear(self, known: _Optimizer) -> None:
        known.num_clears += 1
        known.is_clear = True
        if known.num_backwards:
            known.num_backwards = 0
            known.cleared_after_backward = True
            if known.backward_batch != known.last_discarded:
                known.last_discarded = known.backward_batch
                known.num_pending += 1

    def _differentiates(self, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        self._timeline.differentiated()

    def _goes_backward(self, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        self._timeline.num_backwards += 1
        self._timeline.differentiated()
        for reference, known in self._optimizers.values():
            if reference() is None:
                continue
            if known.num_steps and (_is_gone(known) if known.is_clear else _is_cleared(known)):
                self._note_clear(known)
            known.num_backwards += 1
            known.backward_batch = self._timeline.num_batches
            known.cleared_after_backward = False

    def _scaler_steps(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        # It skips the step if a gradient overflowed: those gradients were looked at and not lost by mistake.
        known = self._known(args[1])
        known.num_backwards = known.num_pending = 0
        known.last_discarded = -1

    def _steps(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if id(optimizer) in self._stepping:  # an exception left its last step
            self._stepping.clear()
        self._stepping.append(id(optimizer))
        known = self._known(optimizer)
        if known.num_steps and not known.is_clear and _is_cleared(known):
            self._note_clear(known)
        known.had_gradient = next(_with_gradient(known, optimizer), None) is not None
        if known.had_gradient and known.cleared_after_backward and _is_cleared(known):
            known.had_gradient = False  # cleared to zeros
        if len(args) > 1 or kwargs:
            known.had_gradient = True  # a closure will make them

    def _stepped(self, optimizer: Any, _: Any, __: Any) -> None:
        if id(optimizer) in self._stepping:
            self._stepping.remove(id(optimizer))
        known = self._known(optimizer)
        if not known.num_steps:
            known.step_place = user_place()
            known.num_parameters = sum(len(group["params"]) for group in optimizer.param_groups)
        known.num_steps += 1
        if not self._stepping:
            self._timeline.stepped()
        known.num_used += not known.is_clear
        if not known.had_gradient and next(_with_gradient(known, optimizer), None) is None:
            known.num_without += 1
            known.num_cleared_before_step += known.cleared_after_backward
        elif known.cleared_after_backward and not known.had_gradient:
            known.num_without += 1
            known.num_cleared_before_step += 1
        # A pass whose gradients are cleared before a second one over the same batch, for an adversarial sample, is used.
        known.num_discarded += known.num_pending - (known.last_discarded == known.backward_batch)
        known.num_pending, known.last_discarded = 0, -1
        _mark(known, optimizer)
        known.is_clear = not known.watched  # without any gradient there is nothing to clear
        known.cleared_after_backward, known.num_backwards = False, 0


def _with_gradient(known: _Optimizer, optimizer: Any) -> Iterator[Any]:
    """Yields parameters that have a gradient, those that are watched first."""
    for reference, _, _ in known.watched:
        parameter = reference()
        if parameter is not None and parameter.grad is not None:
            yield parameter
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                yield parameter


def _mark(known: _Optimizer, optimizer: Any) -> None:
    """Remembers the gradients that a step has used."""
    marks = []
    for reference, _, _ in known.watched:
        parameter = reference()
        gradient = None if parameter is None else parameter.grad
        if gradient is not None:
            marks.append((reference, id(gradient), gradient._version))
    if not marks:
        having = list(_with_gradient(known, optimizer))
        chosen = {id(one): one for one in (having[0], having[len(having) // 2], having[-1])} if having else {}
        marks = [(weakref.ref(one), id(one.grad), one.grad._version) for one in chosen.values()][:NUM_WATCHED]
    known.watched = marks


def _is_gone(known: _Optimizer) -> bool:
    """True if backward passes since the last clearing have left nothing: it was cleared again."""
    if not known.num_backwards or not known.watched:
        return False
    parameters = [reference() for reference, _, _ in known.watched]
    return all(parameter is None or parameter.grad is None for parameter in parameters)


def _is_cleared(known: _Optimizer) -> bool:
    """True if the watched gradients are not those of the last step any more: gone, another tensor, or all zeros."""
    is_zero = False
    for reference, identity, version in known.watched:
        parameter = reference()
        if parameter is None:
            continue
        gradient = parameter.grad
        if gradient is None:
            return True
        if not known.num_backwards and id(gradient) != identity:
            return True  # another tensor was put there by hand
        if id(gradient) == identity and gradient._version == version:
            return False  # nobody has touched it
        if gradient.is_cuda or gradient.is_mps:
            known.num_device_reads += 1
            if known.num_device_reads > MOST_DEVICE_READS:
                return True
        if bool(gradient.any()):
            return False
        is_zero = True
    return is_zero
