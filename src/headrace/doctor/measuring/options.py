"""How to measure."""

from __future__ import annotations

import dataclasses

from headrace.doctor.timing.consumer import Consumer
from headrace.errors import ConfigurationError

__all__ = ["Options"]

LEAST_BUDGET_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to measure.

    Raises:
        ConfigurationError: options that cannot be meant.
    """

    consumer: Consumer | None = None
    """Who takes the batches; None: nobody, the loader alone is measured."""
    workers: int | None = None
    """Measure with so many workers; None: as the loader is set."""
    budget_s: float = 60.0
    """Seconds for everything together."""
    seed: int = 0
    """Of the global generators before each epoch, and of the order of rounds."""
    is_cold: bool = False
    """Files leave the page cache before each round; else they are read once beforehand."""
    stuck_s: float = 30.0
    """Seconds after which a batch is stuck."""
    command: str = ""
    """As it was typed, for the report."""
    trace: str | None = None
    """File for a time line of one accounted round; None: none is written."""

    def __post_init__(self) -> None:
        if self.budget_s < LEAST_BUDGET_S:
            raise ConfigurationError(f"budget_s={self.budget_s:g}: at least {LEAST_BUDGET_S:g} s; 60 s is usual")
        if self.workers is not None and self.workers < 0:
            raise ConfigurationError(f"workers={self.workers}: 0 or more")
