"""What `watch` saw of optimizers, schedules, models, losses and checkpoints in a running script."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence

__all__ = [
    "CheckpointTrace",
    "CheckpointTraces",
    "LossTrace",
    "ModelTrace",
    "ModelTraces",
    "OptimizerTrace",
    "ScheduleTrace",
    "TrainingTrace",
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerTrace:
    """One optimizer object."""

    number: int
    where: str | None
    """`file:line` of the user's code that made it."""
    kind: str
    num_steps: int
    num_clears: int = 0
    """Times that its gradients were seen to be cleared: by `zero_grad` of the optimizer or of a module, by hand, by
    another optimizer over the same parameters."""
    num_steps_on_used_gradients: int = 0
    """Steps whose gradients still held those of the step before: nothing had cleared them in between."""
    num_steps_without_gradient: int = 0
    """Steps at which no parameter had a gradient."""
    num_cleared_before_step: int = 0
    """Of those, steps before which gradients were cleared after the last backward pass."""
    num_discarded: int = 0
    """Batches whose gradients were cleared before any step used them."""
    num_parameters: int = 0
    step_place: str | None = None
    """`file:line` of the user's code that called `step` first."""
    clear_place: str | None = None
    """`file:line` of the user's code that cleared its gradients first; None: never, or by hand."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTrace:
    """One learning rate schedule."""

    kind: str
    where: str | None
    """`file:line` of the user's code that made it."""
    step_place: str | None
    """`file:line` of the user's code that stepped it first."""
    num_steps: int
    """Without the one that its constructor takes."""
    num_early: int
    """Its steps before the first step of its optimizer."""
    num_optimizer_steps: int
    """Steps of its optimizer."""
    ends_with_optimizer: bool
    """True if the optimizer stepped after the schedule's last step."""
    is_catching_up: bool = False
    """True if it was stepped several times in a row before training began, as old scripts do to resume."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTrace(Evidence):
    """The training loop, as its calls show it."""

    num_steps: int
    """Optimizer steps; those that an optimizer takes inside another one's step are not counted."""
    num_backwards: int
    optimizers: tuple[OptimizerTrace, ...]
    schedules: tuple[ScheduleTrace, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrace:
    """One root module: a module with parameters that is part of no other one."""

    number: int
    where: str | None
    """`file:line` of the user's code that made it."""
    kind: str
    num_calls: int = 0
    """Calls from outside of any module."""
    num_evaluations: int = 0
    """Of those, calls that recorded no gradients."""
    mode_sensitive: tuple[str, ...] = ()
    """Names and kinds of the modules that behave differently in the two modes (dropout, batch norm), the first few."""
    batch_norms: tuple[str, ...] = ()
    """Names and kinds of its batch norms, the first few."""
    steps_training: int = 0
    """Optimizer steps on its parameters after a backward pass in training mode, or in a mixture of both modes."""
    steps_in_eval_mode: int = 0
    """The same with the whole module in evaluation mode."""
    first_step_in_eval_mode: int | None = None
    """Number of that optimizer step, from 0."""
    trained_before: bool = False
    """True if steps in training mode came before the first one in evaluation mode."""
    ends_in_eval_mode: bool = False
    """True if the last step was one in evaluation mode."""
    stuck_since: str | None = None
    """`file:line` of the user's code that last switched it to evaluation mode before such steps."""
    evaluated_before_stuck: bool = False
    """True if it was called without recording gradients between that switch and the first such step."""
    partly_frozen: bool = False
    """True if some of its parameters need no gradient or are in no optimizer."""
    evaluated_in_train_mode: int = 0
    """Calls on batches of evaluation loaders with modules that are sensitive in training mode."""
    evaluations_with_gradients: int = 0
    """Calls on batches of evaluation loaders that recorded what a backward pass would need."""
    evaluation_batches: int = 0
    """Batches of evaluation loaders on which it was called."""
    evaluation_calls: int = 0
    train_mode_place: str | None = None
    """`file:line` of the first call in training mode on such a batch."""
    gradients_place: str | None = None
    unoptimised: tuple[str, ...] = ()
    """Names of parameters that got gradients, are in no optimizer, and never changed."""
    unoptimised_is_new: bool = False
    """True if the user's code made those parameters and loaded nothing into them: they stay random."""
    num_parameters: int = 0
    num_optimised: int = 0
    """Parameters that need gradients and are in an optimizer."""
    num_reached: int = 0
    """Of those, the ones that ever had a gradient."""
    never_updated: bool = False
    """True if none of its optimised parameters changed during the steps, at a learning rate above 0."""
    num_steps: int = 0
    """Steps of optimizers that hold its parameters."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelTraces(Evidence):
    """Every root module that took part in training or was called."""

    models: tuple[ModelTrace, ...]
    num_orphans: int = 0
    """Parameters of an optimizer that are in no module and get no gradient: what a replaced module leaves behind."""
    num_beside_orphans: int = 0
    """The other parameters of that optimizer."""
    orphans_place: str | None = None
    """`file:line` of the user's code that made that optimizer."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LossTrace(Evidence):
    """The values from which backward passes began, where they are single numbers."""

    num_read: int
    """Values that were looked at: all on the CPU, one in 50 on other devices."""
    num_nonfinite: int
    first: tuple[int, str, str | None] | None
    """(optimizer steps before it, `nan` or `inf`, `file:line` of the backward call) of the first that was not finite."""
    sample_ids: tuple[int, ...] = ()
    """Samples of that batch, where its loader says them."""
    was_stepped_on: bool = False
    """True if an optimizer stepped with gradients of that backward pass."""
    is_last_finite: bool = True
    """True if the newest value that was looked at is finite: training recovered."""
    last_finite: float | None = None
    """The newest finite value before the first one that was not."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTrace:
    """What the script saved at one step: one file, or several in one folder."""

    path: str
    """Of the first file."""
    where: str | None
    """`file:line` of the user's code that saved it."""
    step: int
    """Optimizer steps at that time."""
    keys: tuple[str, ...]
    """Keys of what was saved, where it is a mapping, the first ones."""
    holds: tuple[str, ...]
    """What was recognised in it by its form: model, optimizer, scheduler, scaler, random-state, loader, epoch, step."""
    is_complete_write: bool = False
    """True if it was written under another name and then renamed, so that a crash while saving leaves the old one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTraces(Evidence):
    """Every checkpoint that the script wrote, and what it would have needed."""

    saved: tuple[CheckpointTrace, ...]
    """The first hundred."""
    needed: tuple[str, ...]
    """What this script uses and a resumed run would need: model, optimizer (if it keeps anything), scheduler, scaler."""
    is_resumed: bool = False
    """True if the script loaded, before it trained, what it later saved, or a file that holds an optimizer."""
    goes_on: str | None = None
    """Why the script's text shows that it goes on from what it saves, e.g. `train.py:31 reads 'epoch' back`."""
    num_steps: int = 0
    """Optimizer steps of the run."""
