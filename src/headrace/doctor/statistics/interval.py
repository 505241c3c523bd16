"""An interval on the log scale, and its ends as ratios."""

from __future__ import annotations

import dataclasses
import math

__all__ = ["Interval"]


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """All values from `low` to `high`, both included; an end that nothing bounds is infinite."""

    low: float
    high: float

    @classmethod
    def around(cls, middle: float, half_width: float) -> Interval:
        """Reaches equally far to both sides of `middle`."""
        return cls(middle - half_width, middle + half_width)

    @property
    def farthest(self) -> float:
        """The greatest absolute value inside."""
        return max(abs(self.low), abs(self.high))

    def lies_within(self, margin: float) -> bool:
        """True if every value is closer to zero than `margin`."""
        return -margin < self.low and self.high < margin

    def lies_outside(self, margin: float) -> bool:
        """True if every value is farther from zero than `margin`, all on the same side."""
        return self.low > margin or self.high < -margin

    def exp(self) -> Interval:
        """Ratios of log ratios; a log ratio that nothing bounds gives 0 or infinity."""
        return Interval(_exp(self.low), _exp(self.high))


def _exp(log: float) -> float:
    """The exponential; infinity where floats end."""
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf
