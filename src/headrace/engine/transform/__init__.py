"""From records to samples: named stages, their keyed generators, and a guard for the global ones."""

from headrace.engine.transform.global_generators import GlobalState, capture, keyed, moved_since, reseed, restore
from headrace.engine.transform.rng import sample_generator
from headrace.engine.transform.stage import Stage

__all__ = ["GlobalState", "Stage", "capture", "keyed", "moved_since", "reseed", "restore", "sample_generator"]
