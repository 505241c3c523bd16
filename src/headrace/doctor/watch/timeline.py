"""What the observers of one process share: which loader handed over last, and how far training has come.

A few integers, changed at each batch and each optimizer step: cheap enough to be always on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

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
    stepped_since_batch: bool = False
    since_step: set[int] = dataclasses.field(default_factory=set)
    """Loaders that handed over a batch since the last optimizer step."""
    steps_with: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> steps before which it handed over a batch, alone or beside others: two loaders under one `zip`."""

    batches: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> batches that it handed over."""
    longest_runs: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> most batches that it handed over in a row, without one of another loader or a step between."""
    differentiated_on: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> backward passes and other uses of autograd while its batch was the newest."""
    run: int = 0
    """Batches of the newest loader in a row."""
    training_began_s: float = -math.inf
    """When the newest training began: an optimizer was made over parameters that none had before."""
    weights_began_s: float | None = None
    """From when on only optimizer steps changed weights: an optimizer was made then, or weights were put back or loaded.
    None: there was no optimizer."""
    at_walk: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    """Called when a walk through a loader begins."""
    recalibrated_on: dict[int, int] = dataclasses.field(default_factory=dict)
    """Loader number -> batches from which the statistics of batch norms were taken anew, as after weight averaging."""

    def walk_begins(self) -> None:
        """A walk through a loader begins."""
        for look in self.at_walk:
            look()

    def handed_over(self, loader: int, ids: tuple[int, ...] | None = None) -> None:
        """A loader hands over a batch."""
        self.run = self.run + 1 if loader == self.last_loader and not self.stepped_since_batch else 1
        if self.run > self.longest_runs.get(loader, 0):
            self.longest_runs[loader] = self.run
        self.batches[loader] = self.batches.get(loader, 0) + 1
        self.last_ids = ids
        self.last_loader = loader
        self.num_batches += 1
        self.stepped_since_batch = False
        self.since_step.add(loader)

    def stepped(self) -> None:
        """An optimizer steps."""
        self.num_steps += 1
        if self.last_loader is not None and not self.stepped_since_batch:
            self.batches_at_step[self.last_loader] = self.batches_at_step.get(self.last_loader, 0) + 1
        self.stepped_since_batch = True
        for loader in self.since_step:
            self.steps_with[loader] = self.steps_with.get(loader, 0) + 1
        self.since_step.clear()

    def is_trained_on(self, loader: int, num_batches: int) -> bool:
        """True if optimizer steps follow this loader's batches.

        Directly, or beside another loader's: `zip(a, b)` hands over both before each step, while an evaluation hands
        over many batches for which no step comes.
        """
        together = self.steps_with.get(loader, 0)
        return loader in self.batches_at_step or (together >= 3 and 2 * together > num_batches)

    def recalibrated(self) -> None:
        """The newest batch goes through a model for the sake of its batch norms."""
        if self.last_loader is not None:
            self.recalibrated_on[self.last_loader] = self.recalibrated_on.get(self.last_loader, 0) + 1

    def is_recalibrated_on(self, loader: int) -> bool:
        """True if that is what this loader is read for."""
        return 2 * self.recalibrated_on.get(loader, 0) > self.batches.get(loader, 0)

    def differentiated(self) -> None:
        """Autograd is used on the newest batch."""
        if self.last_loader is not None:
            self.differentiated_on[self.last_loader] = self.differentiated_on.get(self.last_loader, 0) + 1

    def is_evaluation(self, loader: int | None) -> bool:
        """True if others are trained on, and this one is only read, without derivatives.

        The second half of a semi-supervised batch also comes without a step of its own: an evaluation is rarer than the
        steps, or comes in a row.
        """
        if loader is None or loader not in self.batches or not self.batches_at_step:
            return False
        if self.is_recalibrated_on(loader):
            return False
        if self.differentiated_on.get(loader) or self.is_trained_on(loader, self.batches[loader]):
            return False
        return self.longest_runs.get(loader, 0) > 1 or self.batches[loader] * 2 < self.num_steps
