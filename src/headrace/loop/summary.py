"""A table of a model's layers, made by torchinfo where it is installed, and without a trace in the model."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.loop.evaluation import undisturbed

if TYPE_CHECKING:
    import torch

__all__ = ["summary_of"]


def summary_of(model: torch.nn.Module, inputs: Sequence[Any]) -> str | None:
    """Returns the table, or None if torchinfo is not installed or cannot follow the model.

    torchinfo runs the model; buffers, modes and random state are put back, and it runs without gradients.

    Args:
        model: The model.
        inputs: What it was called with, by position.
    """
    if importlib.util.find_spec("torchinfo") is None:
        return None
    import torchinfo

    with undisturbed({"": model}):
        try:
            return str(torchinfo.summary(model, input_data=list(inputs), verbose=0))
        except Exception:  # a table is not worth a run
            return None
