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
    last_ids: tuple[int, ...] | None = None
    """Sample numbers of the newest batch; None: its loader does not say them."""
    num_batches: int = 0
    """Batches handed over by all loaders together."""
    num_backwards: int = 0
    num_steps: int = 0
    """Optimizer steps of all optimizers together."""
    batches_at_step: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> its batches that an optimizer step followed before the next batch of any loader: what makes it a
    training loader."""
    batches: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> batches that it handed over."""
    longest_runs: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> most batches that it handed over in a row, without one of another loader or a step between."""
    backwards: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> backward passes and other uses of autograd while its batch was the newest."""
    stepped_since_batch: bool = False
    _run: int = 0

    def handed_over(self, loader: int, ids: tuple[int, ...] | None = None) -> None:
        """A loader hands over a batch."""
        self._run = self._run + 1 if loader == self.last_loader and not self.stepped_since_batch else 1
        if self._run > self.longest_runs.get(loader, 0):
            self.longest_runs[loader] = self._run
        self.batches[loader] = self.batches.get(loader, 0) + 1
        self.last_loader = loader
        self.last_ids = ids
        self.num_batches += 1
        self.stepped_since_batch = False

    def differentiated(self) -> None:
        """Autograd is used on the newest batch."""
        if self.last_loader is not None:
            self.backwards[self.last_loader] = self.backwards.get(self.last_loader, 0) + 1

    def stepped(self) -> None:
        """An optimizer steps."""
        self.num_steps += 1
        if self.last_loader is not None and not self.stepped_since_batch:
            self.batches_at_step[self.last_loader] = self.batches_at_step.get(self.last_loader, 0) + 1
        self.stepped_since_batch = True

    def is_evaluation(self, loader: int | None) -> bool:
        """True if others are trained on and this one is only read, without derivatives.

        A loader whose batches come one by one between the steps, such as the second half of a semi-supervised batch,
        is not told apart from an evaluation of one batch by this alone: it must also be rare, or come in a row.
        """
        if loader is None or loader not in self.batches or self.batches_at_step.get(loader):
            return False
        if self.backwards.get(loader) or not self.batches_at_step:
            return False
        return self.longest_runs.get(loader, 0) > 1 or self.batches[loader] * 2 < self.num_steps
