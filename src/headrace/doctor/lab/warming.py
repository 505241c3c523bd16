"""What a process imports before it forks children that train, so that each of them begins at once."""

from __future__ import annotations

__all__ = ["warm_up_training"]


def warm_up_training() -> None:
    """Imports what a training step needs; torch imports a third of it, a second's work, with the first optimizer.

    No backward pass: its threads would not survive the fork.
    """
    import torch.utils.data

    parameter = torch.zeros(1, requires_grad=True)
    parameter.grad = torch.zeros(1)
    optimizer = torch.optim.Adam([parameter], lr=0.0)
    optimizer.step()
    optimizer.zero_grad()
