"""What `watch` saw of models, optimizers, schedulers, losses and checkpoints in a running script."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence

__all__ = ["CheckpointTrace", "CheckpointTraces", "ModelTrace", "OptimizerTrace", "TrainingTrace"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerTrace:
    """One optimizer object."""

    number: int
    where: str | None
    """`file:line` of the user's code that made it."""
    kind: str
    num_steps: int
    num_clears: int
    """Times that gradients were cleared: `zero_grad` of the optimizer or of a module that holds its parameters, or
    gradients set to None by hand."""
    backwards_between_clears: tuple[int, ...]
    """Backward passes between two clears, for the first 200; ends with those since the last clear."""
    steps_between_clears: tuple[int, ...]
    """Steps between two clears, likewise. Accumulation has one step per clear, and several backward passes."""
    num_steps_without_gradient: int
    """Steps at which no parameter had a gradient."""
    step_place: str | None
    """`file:line` of the user's code that called `step`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrace:
    """One root module: a module that is no child of another one and that was called."""

    number: int
    where: str | None
    """`file:line` of the user's code that made it."""
    kind: str
    num_calls_training: int
    """Calls with `training=True`."""
    num_calls_evaluating: int
    mode_matters: bool
    """True if it holds dropout, batch norm or another module that behaves differently in the two modes."""
    mode_sensitive: tuple[str, ...]
    """Names and kinds of such modules, the first few."""
    has_batch_norm: bool
    steps_in_eval_mode: int
    """Optimizer steps whose forward pass ran in evaluation mode."""
    first_step_in_eval_mode: int | None
    stuck_since: str | None
    """`file:line` of the user's code that called `eval()` last before such steps."""
    frozen_on_purpose: bool
    """True if only a part of its modules is in evaluation mode, as fine-tuning does."""
    evaluated_in_train_mode: int
    """Calls in training mode on batches of an evaluation loader."""
    evaluations_with_gradients: int
    """Calls on batches of an evaluation loader that recorded a graph for backward."""
    evaluation_place: str | None
    unoptimised: tuple[str, ...]
    """Names of parameters with `requires_grad` that are in no optimizer."""
    never_updated: tuple[str, ...]
    """Names of parameters that are in an optimizer and whose values never changed."""
    never_reached: tuple[str, ...]
    """Names of parameters in an optimizer that never had a gradient."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTrace(Evidence):
    """The training loop, as its calls show it."""

    num_steps: int
    num_backwards: int
    optimizers: tuple[OptimizerTrace, ...]
    models: tuple[ModelTrace, ...]
    schedules_before_step: tuple[str, ...]
    """`file:line` where a scheduler was stepped before its optimizer's first step or before each step."""
    nonfinite_losses: tuple[tuple[int, str, str | None], ...]
    """(step, `nan` or `inf`, `file:line` of the backward call), the first few."""
    nonfinite_sample_ids: tuple[int, ...]
    """Sample numbers of the first such batch, where its loader says them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTrace:
    """One file that `torch.save` (or safetensors, or torch.distributed.checkpoint) wrote."""

    path: str
    where: str | None
    """`file:line` of the user's code that saved it."""
    step: int
    """Optimizer steps at that time."""
    keys: tuple[str, ...]
    """Keys of the saved mapping, two levels deep; empty: no mapping."""
    holds: tuple[str, ...]
    """What was recognised: model, optimizer, scheduler, scaler, random-state, loader, step, epoch."""
    is_complete_write: bool
    """True if it was written under another name and then renamed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTraces(Evidence):
    """Every checkpoint that the script wrote, and what it would have needed."""

    saved: tuple[CheckpointTrace, ...]
    needed: tuple[str, ...]
    """What this script uses and a resumed run would need: model, optimizer, scheduler, scaler, random-state, loader, step."""
    num_loaded: int
    """Checkpoints that the script loaded: a script that never loads one may save weights alone on purpose."""
