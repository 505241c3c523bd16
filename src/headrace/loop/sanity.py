"""A look at a run before it begins: a few trial steps, after which everything is as it was.

What is asked is what people ask too late: are the batches of one structure, does every trained parameter get a gradient, can the
model learn one batch at all, does one sample's output depend on its neighbours, is the evaluation the same twice, do the steps repeat?
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.loop.alike import batch_faults
from headrace.loop.checkpoint import Checkpointer
from headrace.loop.checkpoint.digests import Digests, digests, first_difference
from headrace.loop.checkpoint.trial import Trial
from headrace.loop.evaluation import Measure, evaluate, undisturbed
from headrace.loop.step import Step
from headrace.loop.updates import Updates

if TYPE_CHECKING:
    import torch

__all__ = ["Sanity"]

BUDGET_S = 20.0
"""Seconds for all trials; what does not fit is left out."""
MOST_STEPS = 20
"""Steps in which one batch must get easier."""
MOST_REPEATED = 10
"""Steps that are run twice: enough for a kernel that is only sometimes otherwise, and cheap beside the rest."""
NUM_BATCHES = 2


@dataclasses.dataclass(slots=True)
class _Forward:
    """What went into a model and came out of it, the first time that it was called."""

    model: Any
    args: tuple[Any, ...] = ()
    output: Any = None


class Sanity:
    """The trials of one run. `trials` yields steps for the body; afterwards `found` says what is wrong.

    Args:
        updates: Of the run.
        checkpoint: Of the run; brings everything back.
        models: What is trained, by name.
        make_step: Makes a trial step of what takes its loss and a batch.
        evaluation: Loader and measure; None: there is no evaluation.
        metrics: Of the evaluation.
        data: The data set, which may say what its classes are; None: not known.
        budget_s: Seconds for all trials; what does not fit is left out.
    """

    def __init__(
        self,
        updates: Updates,
        checkpoint: Checkpointer,
        models: dict[str, torch.nn.Module],
        *,
        make_step: Callable[[Any, Any], Step],
        evaluation: tuple[Any, Measure] | None,
        metrics: Mapping[str, Any] | None,
        data: Any = None,
        budget_s: float = BUDGET_S,
    ) -> None:
        self._updates, self._checkpoint, self._models = updates, checkpoint, models
        self._make_step, self._evaluation, self._metrics = make_step, evaluation, metrics
        self._data, self._budget_s = data, budget_s
        self._losses: list[Any] = []
        self.inputs: dict[str, tuple[Any, ...]] = {}
        """What each model was first called with, by its name; empty before the trials, and for calls with keywords."""
        self.found: list[str] = []
        """What is wrong, in words; empty: nothing."""

    def trials(self) -> Iterator[Step]:
        """Yields the trial steps; whatever happens, all is then as it was before."""
        deadline = time.monotonic() + self._budget_s
        trial = self._checkpoint.trial()
        try:
            batches = list(itertools.islice(self._checkpoint.batches(), NUM_BATCHES))
            if not batches:
                return
            trial.put_back()
            self.found += batch_faults(batches, self._data)
            yield from self._gradients(batches[0])
            for steps in (self._learning(batches[0], trial), self._repeating(batches, trial, deadline)):
                if time.monotonic() < deadline:
                    trial.put_back()
                    yield from steps
            if time.monotonic() < deadline:
                trial.put_back()
                self._evaluates_alike()
        finally:
            trial.put_back()

    # The trials.

    def _gradients(self, batch: Any) -> Iterator[Step]:
        with _listening(self._models) as forwards:
            yield from self._body(batch, takes_step=False)
        names = {id(model): name for name, model in self._models.items()}
        self.inputs = {names[id(one.model)]: one.args for one in forwards}
        if not self._losses:
            return
        missing = [
            f"{name}.{parameter}".lstrip(".")
            for name, model in self._models.items()
            for parameter, value in model.named_parameters()
            if value.requires_grad and value.grad is None
        ]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            self.found.append(
                f"{', '.join(missing[:3])}{more}: no gradient comes to {'it' if len(missing) == 1 else 'them'}. Used nowhere in the "
                "loss, or cut off by detach() or no_grad(); freeze what is not meant to learn: requires_grad_(False)"
            )
        for forward in forwards:
            self._look_at_first_loss(forward, batch)
            self._look_at_neighbours(forward)

    def _look_at_first_loss(self, forward: _Forward, batch: Any) -> None:
        """A classifier that knows nothing has the loss ln C; far above, it begins sure of what is wrong."""
        import torch

        output = forward.output
        if (
            not isinstance(output, torch.Tensor)
            or output.ndim != 2
            or output.shape[1] < 2
            or not output.is_floating_point()
        ):
            return
        loss, num_classes = float(self._losses[0]), output.shape[1]
        for target in _tensors(batch):
            if target.shape == output.shape[:1] and target.dtype in {torch.int64, torch.int32} and len(target):
                if int(target.min()) < 0 or int(target.max()) >= num_classes:
                    continue
                entropy = float(torch.nn.functional.cross_entropy(output.float(), target.long().to(output.device)))
                if math.isclose(entropy, loss, rel_tol=1e-3) and loss > 2 * math.log(num_classes) + 0.5:
                    self.found.append(
                        f"the first loss is {loss:.2f}; a model that knows nothing of {num_classes} classes has ln {num_classes} = "
                        f"{math.log(num_classes):.2f}. Inputs that are not normalised, or a last layer with large weights"
                    )
                    return

    def _look_at_neighbours(self, forward: _Forward) -> None:
        """In evaluation mode the output for the first sample must not change with the others."""
        import torch

        output = forward.output
        tensors = [one for one in forward.args if isinstance(one, torch.Tensor)]
        if not isinstance(output, torch.Tensor) or output.ndim < 1 or len(tensors) != len(forward.args) or not tensors:
            return
        number = output.shape[0]
        if number < 2 or any(one.ndim < 1 or one.shape[0] != number for one in tensors):
            return
        with undisturbed(self._models):
            alone = [one[:1].expand_as(one).contiguous() for one in tensors]
            first, second = forward.model(*tensors)[0], forward.model(*alone)[0]
        if first.is_floating_point() and not torch.allclose(
            first, second, rtol=1e-2, atol=1e-3 * float(first.abs().max() + 1e-6)
        ):
            self.found.append(
                "the model's output for one sample depends on the others of its batch, in evaluation mode too: an axis is mixed up "
                "(softmax, reshape, mean over dim 0), unless it is meant"
            )

    def _learning(self, batch: Any, trial: Trial) -> Iterator[Step]:
        self._updates.use_initial_rates()
        losses: list[float] = []
        for _ in range(MOST_STEPS):
            trial.put_back_random()  # with the same dropout and noise the loss is a function of the weights alone
            self._losses = []
            yield from self._body(batch, takes_step=True)
            if not self._losses:
                return
            losses.append(float(self._losses[0]))
            if not math.isfinite(losses[-1]):
                break
            if losses[-1] < losses[0] - 1e-4 * abs(losses[0]):
                return
        self.found.append(
            f"{len(losses)} steps on one batch did not lower its loss: {losses[0]:.4g} at first, {losses[-1]:.4g} at the end. The optimizer "
            "holds other parameters than the loss depends on, the learning rate is far too high, or the targets are no function of "
            "the inputs"
        )

    def _repeating(self, batches: Sequence[Any], trial: Trial, deadline: float) -> Iterator[Step]:
        """Up to ten steps, the batches in turns, twice from one state: fewer if half of the time is over, but each batch once."""
        parts = [part for part in trial.parts if part.name != "place"]
        halfway = (time.monotonic() + deadline) / 2
        found: list[Digests] = []
        num_steps = MOST_REPEATED
        for _ in range(2):
            trial.put_back()
            for number, batch in enumerate(itertools.islice(itertools.cycle(batches), num_steps), 1):
                yield from self._body(batch, takes_step=True)
                if not found and number >= len(batches) and time.monotonic() > halfway:
                    num_steps = number
                    break
            found.append(digests(parts))
        different = first_difference(*found)
        self._checkpoint.note_repeats(is_exact=different is None)
        if different is not None:
            self.found.append(
                f"the same steps from the same state gave other bits ({different}), so a resumed run will differ in the last digits. "
                "torch.use_deterministic_algorithms(True) names the operation"
            )

    def _evaluates_alike(self) -> None:
        if self._evaluation is None:
            return
        loader, measure = self._evaluation
        batches = list(itertools.islice(loader, NUM_BATCHES))
        if not batches:
            return
        one, two = (evaluate(measure, batches, models=self._models, metrics=self._metrics) for _ in range(2))
        changed = [
            name for name in one if one[name] != two[name] and not (math.isnan(one[name]) and math.isnan(two[name]))
        ]
        if changed:
            self.found.append(
                f"the evaluation of the same batches gave {changed[0]} = {one[changed[0]]:.6g} and then {two[changed[0]]:.6g}: it draws "
                "random numbers, or a part of the model is in training mode while it is measured"
            )

    # One body.

    def _body(self, batch: Any, *, takes_step: bool) -> Iterator[Step]:
        for model in self._models.values():
            model.train()
        trial = _Trial(self._updates, self._losses, takes_step=takes_step)
        self._updates.enter(is_trial=True)
        try:
            yield self._make_step(trial, batch)
        finally:
            self._updates.leave()


class _Trial:
    """Takes the loss of a trial step in place of `Updates`."""

    def __init__(self, updates: Updates, losses: list[Any], *, takes_step: bool) -> None:
        self._updates, self._losses, self._takes_step = updates, losses, takes_step

    def add(self, loss: torch.Tensor, values: Any) -> None:  # noqa: ARG002 - as Updates.add
        """Backward, and a step without schedule and books, if one is to be taken."""
        self._losses.append(loss.detach().clone())
        self._updates.try_out(loss, takes_step=self._takes_step)


@contextlib.contextmanager
def _listening(models: dict[str, torch.nn.Module]) -> Iterator[list[_Forward]]:
    """Notes the first call of each model in the block; calls with keywords are not noted."""
    heard: dict[int, _Forward] = {}

    def listen(model: Any, args: tuple[Any, ...], kwargs: Any, output: Any) -> None:
        import torch

        if id(model) not in heard and not kwargs:
            detached = output.detach().clone() if isinstance(output, torch.Tensor) else None
            kept = tuple(one.detach().clone() if isinstance(one, torch.Tensor) else one for one in args)
            heard[id(model)] = _Forward(model, kept, detached)

    hooks = [model.register_forward_hook(listen, with_kwargs=True) for model in models.values()]
    forwards: list[_Forward] = []
    try:
        yield forwards
    finally:
        for hook in hooks:
            hook.remove()
        forwards += heard.values()


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    """Every tensor of a batch."""
    import torch

    from headrace.loop.checkpoint.tree import leaves

    return (value for _, value in leaves(batch) if isinstance(value, torch.Tensor))
