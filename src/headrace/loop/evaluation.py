"""Evaluation that weighs every sample once and leaves no trace in the training.

A mean over batches is not the mean over samples when the last batch is smaller, and counts samples twice when a rank's
share was filled up. Here sums and counts are kept, per sample, over all batches and ranks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.engine.batch import leading_size
from headrace.engine.loader import DataLoader
from headrace.engine.view import LoaderView
from headrace.errors import ConfigurationError, DataError
from headrace.loop.checkpoint.copies import copied
from headrace.loop.checkpoint.parts import Models, Modes, Randomness
from headrace.loop.checkpoint.ranks import Ranks
from headrace.loop.metrics import computed

if TYPE_CHECKING:
    import torch

__all__ = ["Measure", "evaluate", "undisturbed"]

Measure = Callable[[Any], Mapping[str, Any]]
"""From a batch to values by name: (B,) tensors with one value per sample, or means over the batch."""


def evaluate(
    measure: Measure,
    batches: Iterable[Any],
    *,
    models: Mapping[str, torch.nn.Module],
    metrics: Mapping[str, Any] | None = None,
    ranks: Ranks | None = None,
) -> dict[str, float]:
    """Returns the mean over all samples of each value, and what each metric computes.

    Models are in evaluation mode and no gradient is kept meanwhile; afterwards modes, buffers and random state are what
    they were.

    Args:
        measure: Called with each batch. It returns, by name, tensors of shape (B,), one value per sample; or single
            numbers, which count as means over the batch. May return nothing if it only updates `metrics`.
        batches: A loader or any iterable of batches.
        models: The models that `measure` uses.
        metrics: Objects with `reset`, `compute` and an `update` that `measure` calls, such as those of torchmetrics; they
            combine ranks themselves.
        ranks: The ranks that share the samples. Default: this process alone.

    Raises:
        ConfigurationError: `measure` returned something else; or means over a batch of which some samples are
            repetitions that fill it up, so they cannot be left out.
        DataError: there was no batch; or a model's parameters, or their gradients, were changed, or a model was put in
            training mode.

    `headrace.DataLoader(..., tail="pad")` says which samples are repetitions; per-sample values of these are left out.
    """
    for metric in (metrics or {}).values():
        metric.reset()
    if isinstance(batches, DataLoader | LoaderView):
        batches.set_epoch(0)  # the same samples with the same draws each time
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    num_batches = 0
    with undisturbed(models):
        watched = _evaluating(models)
        for batch in batches:
            num_batches += 1
            keep = _real(batches)
            values = measure(batch) or {}
            _refuse_training_mode(watched)
            for name, value in values.items():
                total, count = _sum_of(name, value, keep, batch)
                sums[name] = sums.get(name, 0.0) + total
                counts[name] = counts.get(name, 0) + count
    if ranks is not None and ranks.world_size > 1:
        sums, counts, num_batches = _over_ranks(ranks, sums, counts, num_batches)
    if num_batches == 0:
        raise DataError("the evaluation had no batch, so there is nothing to judge the model by")
    found = {name: sums[name] / counts[name] for name in sums if counts[name]}
    return found | computed(metrics or {})


@contextlib.contextmanager
def undisturbed(models: Mapping[str, torch.nn.Module]) -> Iterator[None]:
    """Within the block models evaluate and nothing is differentiated; afterwards the training finds all as it was.

    Raises:
        DataError: parameters or their gradients were changed in the block. Buffers are put back; parameters are not copied,
            only watched.
    """
    import torch

    held = Models(models)
    modes, random = Modes(held), Randomness({})
    before_modes, before_random = copied(modes.state()), copied(random.state())
    buffers = [(buffer, buffer.detach().clone()) for model in held.models.values() for buffer in model.buffers()]
    versions = [(name, parameter, parameter._version) for name, parameter in held.parameters()]
    gradients = [(name, parameter, _mark(parameter)) for name, parameter in held.parameters()]
    try:
        for model in models.values():
            model.eval()
        with torch.no_grad():
            yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    buffer.copy_(before)
        modes.load(before_modes)
        random.load(before_random)
    changed = [name for name, parameter, version in versions if parameter._version != version]
    if changed:
        raise DataError(
            f"the evaluation changed parameters of the model: {_first_of(changed)}",
            why="an optimizer was stepped, or a parameter was written to, while the model was evaluated",
        )
    changed = [name for name, parameter, mark in gradients if _mark(parameter) != mark]
    if changed:
        raise DataError(
            f"the evaluation changed gradients of the model: {_first_of(changed)}",
            why="backward() or zero_grad() was called while the model was evaluated, so the next training step would learn "
            "from the evaluation's samples, or forget its own",
            do="torch.autograd.grad(value, inputs) for a derivative in an evaluation: it leaves no gradients behind",
        )


def _mark(parameter: torch.nn.Parameter) -> int | None:
    """How often the gradient of a parameter was written to; None: it has none."""
    return None if parameter.grad is None else parameter.grad._version


def _first_of(names: list[str]) -> str:
    return f"{names[0]!r}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _evaluating(models: Mapping[str, torch.nn.Module]) -> list[tuple[str, torch.nn.Module]]:
    """What must stay in evaluation mode, with words for it: models, and their batch norms.

    Dropout that is turned on by itself is meant: it measures how uncertain a model is. So is what `eval()` leaves on.
    """
    from torch.nn.modules.batchnorm import _BatchNorm

    named = {name: f"model {name!r}" if name else "the model" for name in models}
    found = [(named[name], model) for name, model in models.items()]
    for name, model in models.items():
        found += [
            (f"{path!r} of {named[name]}", one) for path, one in model.named_modules() if isinstance(one, _BatchNorm)
        ]
    return [(words, one) for words, one in found if not one.training]


def _refuse_training_mode(watched: list[tuple[str, torch.nn.Module]]) -> None:
    """Passes if all of them are in evaluation mode still. Looked at between batches: hooks would make torch.compile begin anew.

    Raises:
        DataError: one was put in training mode.
    """
    for words, one in watched:
        if one.training:
            raise DataError(
                f"the evaluation put {words} in training mode",
                why="measure called train(), so dropout and batch norm would work on its next batches as in training",
                do="leave train() and eval() to the loop: all is in evaluation mode when measure is called",
            )


def _real(batches: Any) -> Any:
    """(B,) which samples of the batch at hand are no repetitions; None: all, or not known."""
    last = getattr(batches, "last", None)
    is_pad = getattr(last, "is_pad", None)
    return None if is_pad is None or not is_pad.any() else ~is_pad


def _sum_of(name: str, value: Any, keep: Any, batch: Any) -> tuple[float, int]:
    """(sum over the samples, number of samples) of one value of one batch."""
    import torch

    value = torch.as_tensor(value).detach()
    if value.ndim == 1:
        if keep is not None:
            value = value[torch.as_tensor(keep, device=value.device)]
        return float(value.double().sum()), len(value)
    if value.ndim != 0:
        raise ConfigurationError(
            f"the evaluation's {name!r} has shape {tuple(value.shape)}",
            do="return one value per sample, shape (B,), or one number, the mean over the batch",
        )
    if keep is not None:
        raise ConfigurationError(
            f"the evaluation's {name!r} is one number for a batch of which {int((~keep).sum())} samples only fill it up",
            why="they cannot be left out of a mean",
            do="return one value per sample: loss_fn(..., reduction='none')",
        )
    number = _size_of(batch)
    return float(value) * number, number


def _size_of(batch: Any) -> int:
    """Samples of a batch: the first axis of its first tensor."""
    number = leading_size(batch)
    if number is None:
        raise ConfigurationError(
            "how many samples a batch has cannot be seen, so means over batches cannot be weighted",
            do="return one value per sample, shape (B,)",
        )
    return number


def _over_ranks(
    ranks: Ranks, sums: dict[str, float], counts: dict[str, int], num_batches: int
) -> tuple[dict[str, float], dict[str, int], int]:
    """Adds up over ranks, in the order of the ranks, so that the sum is the same everywhere and each time."""
    gathered = ranks.from_all((sums, counts, num_batches))
    names = list(dict.fromkeys(name for one, _, _ in gathered for name in one))
    return (
        {name: sum(one.get(name, 0.0) for one, _, _ in gathered) for name in names},
        {name: sum(one.get(name, 0) for _, one, _ in gathered) for name in names},
        sum(number for _, _, number in gathered),
    )
