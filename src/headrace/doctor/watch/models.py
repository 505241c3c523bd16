"""Watches root modules: the mode in which they are called and trained, and what becomes of their parameters.

A root is a module with parameters that is part of no other one. Only the classes of roots are tapped, so a call costs
a microsecond for the model and nothing for the modules inside it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.training import ModelTrace, ModelTraces
from headrace.doctor.watch.frames import maker_place, user_place
from headrace.doctor.watch.modes import batch_norms_of, mode_sensitive_of
from headrace.doctor.watch.parameters import Survey
from headrace.doctor.watch.taps import listen, quietly
from headrace.doctor.watch.timeline import Timeline

__all__ = ["ModelObserver"]

MOST_CLASSES = 32
"""Classes of root modules whose calls are watched."""
MOST_ROOTS = 64
_WRAPPERS = ("torch.nn.parallel.", "torch._dynamo.", "torch.distributed.")
"""Modules of these only pass calls on to the one inside: that one is the root."""

CallKey = tuple[int | None, bool, bool]
"""(loader of the newest batch, whether sensitive modules are in training mode, whether gradients are recorded)."""


class _Made:
    """How a module came to be."""

    __slots__ = ("by_user", "is_loaded", "place", "reference")

    def __init__(self, reference: weakref.ref[Any], place: str | None, by_user: bool, is_loaded: bool) -> None:
        self.reference, self.place, self.by_user, self.is_loaded = reference, place, by_user, is_loaded


class _Root:
    """What is known of one root module. The module is held weakly."""

    def __init__(self, number: int, module: Any, made: _Made | None) -> None:
        self.number, self.reference = number, weakref.ref(module)
        self.where, self.kind = None if made is None else made.place, type(module).__name__
        self.sensitive: list[weakref.ref[Any]] = []
        self.sensitive_names: tuple[str, ...] = ()
        self.batch_norms: tuple[str, ...] = ()
        self.momenta: list[tuple[weakref.ref[Any], float | None]] = []
        self.calls: dict[CallKey, int] = {}
        self.call_places: dict[CallKey, str | None] = {}
        self.num_evaluations = 0
        self.last_eval_place: str | None = None
        self.evaluated_since_eval = False
        self.backward_in_eval = False
        self.steps_training = self.steps_in_eval = 0
        self.first_eval_step: int | None = None
        self.trained_before = self.ends_in_eval = self.evaluated_before_stuck = False
        self.stuck_since: str | None = None
        self.survey = Survey()
        self.look(module)

    def look(self, module: Any) -> None:
        """Looks at what the module consists of by now."""
        sensitive = list(mode_sensitive_of(module))
        self.sensitive = [weakref.ref(part) for _, part in sensitive]
        self.sensitive_names = tuple(f"{name} ({type(part).__name__})" for name, part in sensitive[:5])
        batch_norms = list(batch_norms_of(module))
        self.batch_norms = tuple(f"{name} ({type(part).__name__})" for name, part in batch_norms[:5])
        self.momenta = [(weakref.ref(part), part.momentum) for _, part in batch_norms]

    def is_sensitive_in_training(self) -> bool:
        return any(getattr(reference(), "training", False) for reference in self.sensitive)

    def is_recalibrated(self) -> bool:
        """True while its batch norms average over batches with a momentum that is not theirs.

        So does `torch.optim.swa_utils.update_bn`: the model is called in training mode without gradients on purpose.
        """
        return any(getattr(part(), "momentum", momentum) != momentum for part, momentum in self.momenta)


class ModelObserver:
    """Observes modules from their construction on. Costs some microseconds per module made and per step."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._made: dict[int, _Made] = {}
        self._num_made = self._num_studied = 0
        self._roots: dict[int, _Root] = {}
        self._all: list[_Root] = []
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._optimizer_places: dict[int, str | None] = {}
        self._optimised: dict[int, weakref.ref[Any]] = {}
        """Parameters that an optimizer was made over."""
        self._orphans: tuple[str | None, int, int] = (None, 0, 0)
        """(place that made the optimizer, its parameters that are in no module and get no gradient, all of them)."""
        self._owners: dict[int, list[_Root]] = {}
        """Identity of an optimizer -> roots with parameters in it."""
        self._owned: list[_Root] = []
        self._must_study = False
        self._next_study = 1
        self._depth = 0
        self._switching: list[tuple[_Root, bool]] | None = None
        self._switch_depth = 0
        self._steps = 0
        self._glimpsed = (-1, "")
        """(steps, some values of parameters) when the newest walk through a loader began."""
        self._tapped: set[type] = set()
        self._records: Callable[[], bool] = bool
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Sets the hooks."""
        import torch
        from torch.optim import optimizer as hooks

        self._records = torch.is_grad_enabled
        module = torch.nn.Module
        self._undo = [
            listen(module, "__init__", before=self._made_anew),
            listen(module, "__setstate__", after=self._made_from_state),
            listen(module, "load_state_dict", after=self._loaded),
            listen(module, "train", before=self._begins_switch, ended=self._ends_switch),
            listen(torch.optim.Optimizer, "__init__", after=self._new_optimizer),
            listen(torch.autograd, "backward", before=self._goes_backward),
            hooks.register_optimizer_step_pre_hook(quietly(self._steps_begin)).remove,
        ]
        self._timeline.at_walk.append(quietly(self._walk_begins))

    def uninstall(self) -> None:
        """Takes the hooks away; what was seen stays."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        self._tapped.clear()

    def seen(self) -> tuple[Evidence, ...]:
        """Returns ModelTraces: of the roots that were called or trained."""
        if self._optimizers:  # else the script has let go of everything, and the last look counts
            self._survey()
        taking_part = tuple(
            trace for trace in map(self._trace, self._all) if trace.num_calls or trace.num_steps or trace.unoptimised
        )
        place, number, total = self._orphans
        return (
            ModelTraces(models=taking_part, num_orphans=number, num_beside_orphans=total - number, orphans_place=place),
        )

    # How modules come to be.

    def _made_anew(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        place, by_user = maker_place(args[0])
        self._enter(args[0], place, by_user, is_loaded=False)

    def _made_from_state(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        self._enter(args[0], user_place(), by_user=False, is_loaded=True)  # a copy, or out of a file

    def _enter(self, module: Any, place: str | None, by_user: bool, *, is_loaded: bool) -> None:
        key = id(module)

        def forget(_: Any) -> None:
            self._made.pop(key, None)

        self._made[key] = _Made(weakref.ref(module, forget), place, by_user, is_loaded)
        self._num_made += 1

    def _loaded(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        # Into a model that was trained, scripts load its own best weights back: those came from no other training.
        roots = [root for root in self._all if root.survey.num_steps]
        trained = {id(part) for root in roots for part in _parts(root.reference())}
        for root in roots:
            if id(args[0]) in map(id, _parts(root.reference())):
                root.survey.take_as_they_are()
        for part in args[0].modules():
            made = self._made.get(id(part))
            if made is not None and id(part) not in trained:
                made.is_loaded = True

    def _new_optimizer(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        self._optimizers.add(args[0])
        self._optimizer_places[id(args[0])] = user_place()
        self._note_training(args[0])
        self._must_study = True
        self._study()

    def _note_training(self, optimizer: Any) -> None:
        """A training begins with an optimizer over new parameters; another one over the same goes on with it."""
        self._timeline.weights_began_s = time.perf_counter()
        parameters = [parameter for _, parameter in _groups(optimizer)]
        if not any(id(one) in self._optimised and self._optimised[id(one)]() is one for one in parameters):
            self._timeline.training_began_s = self._timeline.weights_began_s
            self._optimised = {key: one for key, one in self._optimised.items() if one() is not None}
        self._optimised |= {id(one): weakref.ref(one) for one in parameters}

    def _walk_begins(self) -> None:
        """Notes whether weights have changed since the last walk began, though there was no step: they were put back.

        Nothing is hooked for it: scripts load them, copy them, or have each module initialise itself. Looked at are a few
        values of a few parameters that lie here whole; asking for those that ranks share would be a collective.
        """
        import torch

        parameters = [one for one in (reference() for reference in self._optimised.values()) if one is not None]
        few = [*parameters[:2], *parameters[2:][-2:]]
        whole = [one.detach() for one in few if type(one.detach()) is torch.Tensor]
        values = repr([one[(0,) * max(0, one.dim() - 1)].reshape(-1)[:8].tolist() for one in whole if one.numel()])
        steps, known = self._glimpsed
        if steps == self._steps and known != values and self._timeline.weights_began_s is not None:
            self._timeline.weights_began_s = time.perf_counter()
        self._glimpsed = self._steps, values

    def _alive(self) -> Iterator[Any]:
        for made in list(self._made.values()):
            module = made.reference()
            if module is not None:
                yield module

    # Which of them are roots.

    def _study(self) -> None:
        """Finds the roots among the modules that live, and which optimizers train them."""
        self._must_study = False
        self._num_studied = self._num_made
        alive = list(self._alive())
        inside = {id(child) for module in alive for child in module._modules.values() if child is not None}
        roots = [self._root(module) for module in map(_unwrapped, (m for m in alive if id(m) not in inside)) if module]
        self._owners = {
            id(optimizer): [root for root in roots if root is not None and root.survey.holds_any(_of(optimizer))]
            for optimizer in self._optimizers
        }
        self._owned = list({id(root): root for owned in self._owners.values() for root in owned}.values())

    def _root(self, module: Any) -> _Root | None:
        known = self._roots.get(id(module))
        if known is not None and known.reference() is module:
            known.look(module)
        else:
            if next(module.parameters(), None) is None or len(self._all) >= MOST_ROOTS:
                return None
            known = self._roots[id(module)] = _Root(len(self._all), module, self._made.get(id(module)))
            self._all.append(known)
            self._tap(type(module))
        known.survey.note(module)
        return known

    def _tap(self, kind: type) -> None:
        if kind in self._tapped or len(self._tapped) >= MOST_CLASSES:
            return
        self._tapped.add(kind)
        self._undo.append(listen(kind, "__call__", before=self._called, ended=self._left))

    # What happens to them.

    def _called(self, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        module = args[0]
        root = self._roots.get(id(module))
        if root is None or id(root.reference()) != id(module):
            return
        records = self._records()
        if not records and module.training and root.is_recalibrated():
            self._timeline.recalibrated()
            return
        key = (self._timeline.last_loader, module.training and root.is_sensitive_in_training(), records)
        count = root.calls.get(key, 0)
        if not count:
            root.call_places[key] = user_place()
        root.calls[key] = count + 1
        if not records:
            root.num_evaluations += 1
            root.evaluated_since_eval = True

    def _left(self) -> None:
        self._depth = max(0, self._depth - 1)  # it may have begun before it was listened to

    def _begins_switch(self, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        self._switch_depth += 1
        if self._switch_depth > 1:
            return
        self._switching = [(root, getattr(root.reference(), "training", False)) for root in self._all]

    def _ends_switch(self) -> None:
        self._switch_depth = max(0, self._switch_depth - 1)
        if self._switch_depth or self._switching is None:
            return
        for root, was_training in self._switching:
            module: Any = root.reference()
            if module is not None and was_training and not module.training:
                root.last_eval_place = user_place()
                root.evaluated_since_eval = False
        self._switching = None

    def _goes_backward(self, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        number = self._timeline.num_backwards
        # Modules may have been wrapped since; a script that makes some in each step is not studied each time.
        if self._must_study or (self._num_made != self._num_studied and number >= self._next_study):
            self._next_study = 2 * number + 1
            self._study()
        for root in self._owned:
            module: Any = root.reference()
            if module is not None:
                root.backward_in_eval = not module.training and not root.is_sensitive_in_training()

    def _steps_begin(self, optimizer: Any, _: Any, __: Any) -> None:
        for root in self._owners.get(id(optimizer), ()):
            root.survey.num_steps += 1
            if root.backward_in_eval:
                if not root.steps_in_eval:
                    root.first_eval_step = self._timeline.num_steps
                    root.trained_before = root.steps_training > 0
                    root.stuck_since = root.last_eval_place
                    root.evaluated_before_stuck = root.evaluated_since_eval
                root.steps_in_eval += 1
            else:
                root.steps_training += 1
            root.ends_in_eval = root.backward_in_eval
        self._steps += 1
        if _is_survey_step(self._steps):
            self._survey()

    def _survey(self) -> None:
        """Looks at the parameters themselves, which takes time: seldom, and at the end."""
        optimised = {id(parameter): group for one in list(self._optimizers) for group, parameter in _groups(one)}
        for root in self._all:
            module = root.reference()
            if module is not None:
                root.survey.look(module, optimised, self._is_new)
        self._orphans = max(
            map(self._orphans_of, list(self._optimizers)), key=lambda found: found[1], default=self._orphans
        )

    def _orphans_of(self, optimizer: Any) -> tuple[str | None, int, int]:
        known = {id(parameter) for module in self._alive() for parameter in module._parameters.values()}
        parameters = [parameter for _, parameter in _groups(optimizer)]
        orphans = [one for one in parameters if id(one) not in known and one.grad is None and one.requires_grad]
        return self._optimizer_places.get(id(optimizer)), len(orphans), len(parameters)

    def _is_new(self, module: Any) -> bool:
        """True if the user's own line made a module, and nothing was loaded into it before it was trained."""
        made = self._made.get(id(module))
        return made is not None and made.by_user and not made.is_loaded

    def _trace(self, root: _Root) -> ModelTrace:
        evaluating = {key: count for key, count in root.calls.items() if self._timeline.is_evaluation(key[0])}
        in_training = [key for key in evaluating if key[1]]
        recording = [key for key in evaluating if key[2] and root.survey.needs_gradients]
        loaders = {key[0] for key in evaluating}
        return ModelTrace(
            number=root.number,
            where=root.where,
            kind=root.kind,
            num_calls=sum(root.calls.values()),
            num_evaluations=root.num_evaluations,
            mode_sensitive=root.sensitive_names,
            batch_norms=root.batch_norms,
            steps_training=root.steps_training,
            steps_in_eval_mode=root.steps_in_eval,
            first_step_in_eval_mode=root.first_eval_step,
            trained_before=root.trained_before,
            ends_in_eval_mode=root.ends_in_eval,
            stuck_since=root.stuck_since,
            evaluated_before_stuck=root.evaluated_before_stuck,
            evaluated_in_train_mode=sum(evaluating[key] for key in in_training),
            evaluations_with_gradients=sum(evaluating[key] for key in recording),
            evaluation_batches=sum(self._timeline.batches.get(number, 0) for number in loaders if number is not None),
            evaluation_calls=sum(evaluating.values()),
            train_mode_place=next((root.call_places[key] for key in in_training), None),
            gradients_place=next((root.call_places[key] for key in recording), None),
            **root.survey.result(),
        )


def _parts(module: Any) -> Iterator[Any]:
    """A module and all inside it; none of one that is gone."""
    return iter(()) if module is None else module.modules()


def _unwrapped(module: Any) -> Any:
    """The module inside wrappers that only pass calls on, such as DistributedDataParallel and a compiled module."""
    while type(module).__module__.startswith(_WRAPPERS) and len(module._modules) == 1:
        module = next(iter(module._modules.values()))
    return module


def _groups(optimizer: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield group, parameter


def _of(optimizer: Any) -> Iterable[int]:
    return (id(parameter) for _, parameter in _groups(optimizer))


def _is_survey_step(number: int) -> bool:
    """1, 2, 3, 5, 10, 20, 50, 100, ...: often at first, and never often."""
    while number >= 10 and number % 10 == 0:
        number //= 10
    return number in {1, 2, 3, 5}
