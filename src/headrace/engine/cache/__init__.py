"""Samples kept as they are after the last deterministic stage: in shared memory, or on disk.

One file per idea: source (the cache seen as a source), content (what a record holds now), stage_hash (what the stages
do), packing and entry (a sample as bytes), memory and disk (where the bytes lie), gather (a batch of them at once).
"""

from headrace.engine.cache.source import CachedSource

__all__ = ["CachedSource"]
