"""What a module's state_dict leaves out: training modes, frozen parameters, buffers that are not persistent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.loop.checkpoint.parts.models import Models
from headrace.loop.checkpoint.parts.names import plain
from headrace.loop.checkpoint.shards import arranged

if TYPE_CHECKING:
    import torch

__all__ = ["Modes"]


class Modes:
    """The modes of models: the usual is not written down.

    Args:
        models: The models.
        name: The part's name in the checkpoint.
    """

    is_per_rank = False

    def __init__(self, models: Models, name: str = "modes") -> None:
        self.name = name
        self.models = models

    def state(self) -> dict[str, Any]:
        """Returns the names of frozen parameters, of modules in evaluation mode, and the buffers that nobody else saves."""
        frozen: list[str] = []
        evaluating: list[str] = []
        buffers: dict[str, Any] = {}
        for prefix, model in self.models.models.items():
            frozen += [plain(name, prefix) for name, one in model.named_parameters() if not one.requires_grad]
            evaluating += [plain(name, prefix) for name, one in model.named_modules() if not one.training]
            buffers |= {plain(name, prefix): buffer for name, buffer in _private_buffers(model)}
        return {"frozen": frozen, "evaluating": evaluating, "buffers": buffers}

    def load(self, state: Any) -> list[str]:
        """Sets each mode; buffers that were not saved keep their values."""
        import torch

        frozen, evaluating = set(state["frozen"]), set(state["evaluating"])
        for prefix, model in self.models.models.items():
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(plain(name, prefix) not in frozen)
            for name, module in model.named_modules():
                module.training = plain(name, prefix) not in evaluating
            for wrapper in self.models.layers[prefix][:-1]:
                wrapper.training = model.training
            with torch.no_grad():
                for name, buffer in _private_buffers(model):
                    if (value := state["buffers"].get(plain(name, prefix))) is not None:
                        buffer.copy_(arranged(value, buffer))
        return []


def _private_buffers(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Buffers registered with persistent=False, by name: training may change them all the same."""
    for path, module in model.named_modules():
        for name in sorted(module._non_persistent_buffers_set):
            if (buffer := module._buffers.get(name)) is not None:
                yield f"{path}.{name}" if path else name, buffer
