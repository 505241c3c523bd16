"""When a checkpoint is due: after so many steps, or so much time."""

from __future__ import annotations

from headrace.errors import ConfigurationError
from headrace.observe import Clock, monotonic

__all__ = ["Cadence"]


class Cadence:
    """Counts steps and seconds since the last save.

    Args:
        every: Optimizer steps between two saves; None: not by steps.
        every_s: Seconds between two saves; None: not by time.
        clock: Seconds on a monotonic clock.
    """

    def __init__(self, *, every: int | None, every_s: float | None, clock: Clock = monotonic) -> None:
        for name, value in (("every", every), ("every_s", every_s)):
            if value is not None and value <= 0:
                raise ConfigurationError(
                    f"{name}={value}: must be more than 0", do=f"leave {name} out to save only when asked"
                )
        self.every, self.every_s = every, every_s
        self._clock = clock
        self._saved_at = clock()

    def is_due(self, step: int) -> bool:
        """True if a save is due after that step."""
        if self.every is not None and step % self.every == 0:
            return True
        return self.every_s is not None and self._clock() - self._saved_at >= self.every_s

    def note_saved(self) -> None:
        """Begins to count the seconds anew."""
        self._saved_at = self._clock()
