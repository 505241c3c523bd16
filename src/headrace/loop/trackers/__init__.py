"""Trackers: what keeps the history of a run."""
