"""The last batch of an epoch, by the numbers."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.doctor.evidence.passes import LoaderTraces
from headrace.doctor.evidence.training import ModelTraces

__all__ = ["LastBatch", "last_batch"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LastBatch(Evidence):
    """How many samples the last batch of a training loader has."""

    size: int
    """0: there is no short one, or it is dropped."""
    drop_last: bool
    num_samples: int
    batch_size: int
    has_batch_norm: bool | None
    """Whether the model has one that takes its statistics from the batch; None: the model is not known."""
    batch_norm: str | None = None
    """Name and kind of the first one."""
    where: str | None = None
    """`file:line` of the user's code that made the loader."""
    basis: Literal["computed", "seen"] = "computed"
    """seen: the model was trained on batches of this loader."""


def last_batch(loaders: LoaderTraces, models: ModelTraces) -> LastBatch | None:
    """Returns the training loader with the smallest last batch, and the trained models; None if none says its size."""
    sized = [
        (one.num_samples % one.batch_size, one.num_samples, one.batch_size, one)
        for one in loaders.loaders
        if one.role == "train" and one.num_samples and one.batch_size and not one.is_distributed
    ]
    rows = [row for row in sized if row[0] and not row[3].drop_last] or sized
    if not rows:
        return None
    size, num_samples, batch_size, loader = min(rows, key=lambda row: row[0])
    norms = [name for model in models.models if model.steps_training for name in model.batch_norms]
    return LastBatch(
        size=0 if loader.drop_last else size,
        drop_last=loader.drop_last,
        num_samples=num_samples,
        batch_size=batch_size,
        has_batch_norm=bool(norms),
        batch_norm=norms[0] if norms else None,
        where=loader.where,
        basis="seen",
    )
