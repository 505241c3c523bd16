"""What a checkpoint is made of: one file per kind of state, each able to give it and to take it back."""

from headrace.loop.checkpoint.parts.gradients import PendingGradients
from headrace.loop.checkpoint.parts.metrics import Metrics
from headrace.loop.checkpoint.parts.models import Models
from headrace.loop.checkpoint.parts.modes import Modes
from headrace.loop.checkpoint.parts.objects import Objects
from headrace.loop.checkpoint.parts.optimizers import Optimizers
from headrace.loop.checkpoint.parts.own_buffers import OwnBuffers
from headrace.loop.checkpoint.parts.part import Part
from headrace.loop.checkpoint.parts.randomness import Randomness
from headrace.loop.checkpoint.parts.values import Values

__all__ = [
    "Metrics",
    "Models",
    "Modes",
    "Objects",
    "Optimizers",
    "OwnBuffers",
    "Part",
    "PendingGradients",
    "Randomness",
    "Values",
]
