"""Watches learning rate schedules: whether they are stepped after the optimizer, as torch expects since 1.1."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.training import ScheduleTrace, TrainingTrace
from headrace.doctor.watch.frames import user_place
from headrace.doctor.watch.taps import listen

__all__ = ["ScheduleObserver"]


class _Schedule:
    def __init__(self, kind: str, where: str | None, optimizer: Any) -> None:
        self.kind, self.where = kind, where
        self.optimizer = id(optimizer)
        self.step_place: str | None = None
        self.num_steps = self.num_early = self.num_before_second = 0
        self.optimizer_steps_after = 0


class ScheduleObserver:
    """Observes every `LRScheduler` of torch and of the user's own classes."""

    def __init__(self) -> None:
        self._schedules: dict[int, tuple[weakref.ref[Any], _Schedule]] = {}
        self._all: list[_Schedule] = []
        self._optimizer_steps: dict[int, int] = {}
        self._depth = 0
        """Constructors and steps that run: a constructor takes a step, a chained schedule steps others."""
        self._tapped: set[type] = set()
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Sets the hooks."""
        import torch
        from torch.optim import optimizer as hooks
        from torch.optim.lr_scheduler import LRScheduler

        for kind in _with_subclasses(LRScheduler):
            self._tap(kind)
        self._undo += [
            listen(torch.optim.Optimizer, "__init__", after=self._new_optimizer),
            hooks.register_optimizer_step_post_hook(
                lambda optimizer, *_: self._optimizer_stepped(id(optimizer))
            ).remove,
        ]
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
        if scaler is not None:
            # It may skip the step itself, which is no fault of the order.
            self._undo.append(listen(scaler, "step", after=lambda args, _, __: self._optimizer_stepped(id(args[1]))))

    def uninstall(self) -> None:
        """Takes the hooks away; what was seen stays."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        self._tapped.clear()

    def seen(self) -> tuple[Evidence, ...]:
        """Returns the part of a TrainingTrace that this observer knows: each schedule that was stepped."""
        return (TrainingTrace(num_steps=0, num_backwards=0, optimizers=(), schedules=self._traces()),)

    def _traces(self) -> tuple[ScheduleTrace, ...]:
        return tuple(
            ScheduleTrace(
                kind=one.kind,
                where=one.where,
                step_place=one.step_place,
                num_steps=one.num_steps,
                num_early=one.num_early,
                num_optimizer_steps=self._optimizer_steps.get(one.optimizer, 0),
                ends_with_optimizer=one.optimizer_steps_after > 0,
                is_catching_up=one.num_early > 1,
            )
            for one in self._all
            if one.num_steps
        )

    def _tap(self, kind: type) -> None:
        if kind in self._tapped:
            return
        self._tapped.add(kind)
        if "__init__" in vars(kind):
            self._undo.append(listen(kind, "__init__", before=self._enters_made, after=self._made, ended=self._left))
        if "step" in vars(kind):
            self._undo.append(listen(kind, "step", before=self._enters_step, ended=self._left))

    def _new_optimizer(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        self._optimizer_steps[id(args[0])] = 0  # an identity may be that of one that is gone

    def _optimizer_stepped(self, optimizer: int) -> None:
        self._optimizer_steps[optimizer] = self._optimizer_steps.get(optimizer, 0) + 1
        for reference, one in self._schedules.values():
            if one.optimizer == optimizer and reference() is not None:
                one.optimizer_steps_after += 1

    def _enters_made(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        self._depth += 1
        for kind in type(args[0]).__mro__:
            if "step" in vars(kind) and kind is not object:
                self._tap(kind)  # a class of the user's own

    def _made(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        schedule = args[0]
        optimizer = getattr(schedule, "optimizer", None)
        found = self._schedules.get(id(schedule))
        if optimizer is None or (found is not None and found[0]() is schedule):
            return
        known = _Schedule(type(schedule).__name__, user_place(), optimizer)
        self._schedules[id(schedule)] = (weakref.ref(schedule), known)
        self._all.append(known)

    def _enters_step(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        found = self._schedules.get(id(args[0]))
        if found is None:
            return
        one = found[1]
        one.num_steps += 1
        one.step_place = one.step_place or user_place()
        one.num_early += not self._optimizer_steps.get(one.optimizer)
        one.optimizer_steps_after = 0

    def _left(self) -> None:
        self._depth = max(0, self._depth - 1)


def _with_subclasses(kind: Any) -> list[type]:
    found: list[type] = [kind]
    for child in kind.__subclasses__():
        found += _with_subclasses(child)
    return found
