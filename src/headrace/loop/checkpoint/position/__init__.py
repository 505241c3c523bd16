"""Where a loader stands, whatever its kind: how its place in an epoch is saved, and how it is found again."""

from headrace.loop.checkpoint.position.kinds import position_of
from headrace.loop.checkpoint.position.position import Position

__all__ = ["Position", "position_of"]
