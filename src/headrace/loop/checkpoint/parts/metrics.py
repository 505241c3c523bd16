"""Running metrics: what torchmetrics' modules have counted so far, which is in no state_dict unless one asks for it."""

from __future__ import annotations

from typing import Any

from headrace.loop.checkpoint.parts.models import Models
from headrace.loop.checkpoint.parts.names import plain

__all__ = ["Metrics"]


class Metrics:
    """The metrics among the modules of a run, each with its sums, counts or lists of values. Each rank has its own.

    Args:
        models: Modules in which they are looked for: models, and what else was given to be saved.
    """

    name = "metrics"
    is_per_rank = True

    def __init__(self, *models: Models) -> None:
        self._models = models

    def __bool__(self) -> bool:
        return bool(self._found())

    def state(self) -> dict[str, Any]:
        """Returns the states of each metric, and how often it was updated."""
        return {
            name: {"states": dict(metric.metric_state), "num_updates": metric._update_count}
            for name, metric in self._found().items()
        }

    def load(self, state: Any) -> list[str]:
        """Sets the states where the metrics are; a metric that was not saved keeps its own."""
        found = self._found()
        for name, metric in found.items():
            if name not in state:
                continue
            for key, value in state[name]["states"].items():
                # Lists of values may be kept in main memory on purpose, which is where what is loaded lies.
                stays = isinstance(value, list) and metric.compute_on_cpu
                setattr(metric, key, value if stays else _moved(value, metric.device))
            metric._update_count = state[name]["num_updates"]
            metric._computed = None  # what it computed of other states
        missing = sorted(found.keys() ^ state.keys())
        return [f"metric {name!r} is {'here' if name in found else 'saved'} only" for name in missing]

    def _found(self) -> dict[str, Any]:
        """By name; looked for each time, because some add others as they go on."""
        found: dict[str, Any] = {}
        for models in self._models:
            for prefix, model in models.models.items():
                for path, module in model.named_modules():
                    if hasattr(module, "metric_state") and hasattr(module, "_update_count"):
                        found[f"{models.name}:{plain(path, prefix)}"] = module
        return found


def _moved(value: Any, device: Any) -> Any:
    """A tensor, or a list of tensors, on the device where the metric counts."""
    if isinstance(value, list):
        return [_moved(one, device) for one in value]
    return value.to(device) if hasattr(value, "to") else value
