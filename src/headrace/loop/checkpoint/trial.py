"""Parts of a run that anything may be tried on, because they can be put back."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.loop.checkpoint.copies import copied
from headrace.loop.checkpoint.parts import Part

__all__ = ["Trial"]


class Trial:
    """Remembers parts as they are when it is made.

    Args:
        parts: In the order of loading; random state is the last one.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._before = [copied(part.state()) for part in self.parts]

    def put_back(self) -> None:
        """Makes all parts what they were."""
        for part, state in zip(self.parts, self._before, strict=True):
            part.load(copied(state))  # what is loaded may be taken over, and changed by the next step

    def put_back_random(self) -> None:
        """Makes random state what it was, and nothing else."""
        self.parts[-1].load(copied(self._before[-1]))
