"""What the observers of one process share: which loader handed over last, and how far training has come.

A few integers, changed at each batch and each optimizer step: cheap enough to be always on.
"""

from __future__ import annotations

import dataclasses

__all__ = ["Timeline"]


@dataclasses.dataclass(slots=True)
class Timeline:
    """Shared by all observers of a process; written from the training thread."""

    last_loader: int | None = None
    """Number of the loader that handed over the newest batch; None: none has."""
    num_batches: int = 0
    """Batches handed over by all loaders together."""
    num_backwards: int = 0
    num_steps: int = 0
    """Optimizer steps of all optimizers together."""
    batches_at_step: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> its batches that an optimizer step followed before the next batch of any loader: what makes it a
    training loader."""
    stepped_since_batch: bool = False

    def handed_over(self, loader: int) -> None:
        """A loader hands over a batch."""
        self.last_loader = loader
        self.num_batches += 1
        self.stepped_since_batch = False

    def stepped(self) -> None:
        """An optimizer steps."""
        self.num_steps += 1
        if self.last_loader is not None and not self.stepped_since_batch:
            self.batches_at_step[self.last_loader] = self.batches_at_step.get(self.last_loader, 0) + 1
        self.stepped_since_batch = True
