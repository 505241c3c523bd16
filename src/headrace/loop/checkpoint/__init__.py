"""Checkpoints: all that a run is made of, written atomically, checked when read, brought back exactly."""

from headrace.loop.checkpoint.checkpointer import Checkpointer
from headrace.loop.checkpoint.promise import Promise, Restored
from headrace.loop.checkpoint.repeat import Repeat
from headrace.loop.checkpoint.saved import Saved

__all__ = ["Checkpointer", "Promise", "Repeat", "Restored", "Saved"]
