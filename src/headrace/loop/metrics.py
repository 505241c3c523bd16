"""What the metrics of an evaluation compute, as numbers by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.errors import ConfigurationError

__all__ = ["computed"]


def computed(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Returns what each metric computes: one number under its name, several as `name/key` or `name/0`.

    Args:
        metrics: Objects with `compute`, by name; torchmetrics' MetricCollection computes a dictionary, and a metric of each
            class a vector.

    Raises:
        ConfigurationError: what one computes is no number and no row of numbers, as a confusion matrix.
    """
    return {name: value for given, metric in metrics.items() for name, value in _numbers(given, metric.compute())}


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(f"{name}/{key}", part)
        return
    shape = tuple(getattr(value, "shape", ()))
    if isinstance(value, list | tuple) or (len(shape) == 1 and shape != (1,)):
        for place, part in enumerate(value):
            yield from _numbers(f"{name}/{place}", part)
        return
    try:
        yield name, float(value)
    except (TypeError, ValueError, RuntimeError):
        found = f"{type(value).__name__}{f' of shape {shape}' if shape else ''}"
        raise ConfigurationError(
            f"metric {name!r} computes a {found}, which is no number",
            why="a history has numbers by name",
            do="keep it out of metrics=, update it in measure, and compute it when the loop is done",
        ) from None
