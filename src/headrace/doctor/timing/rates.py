"""Samples per second of a run over whole epochs, their starts among them."""

from __future__ import annotations

import statistics

from headrace.doctor.timing.timed import Timed

__all__ = ["epoch_rate"]


def epoch_rate(timed: Timed, num_samples: int | None) -> float | None:
    """Returns samples per second over whole epochs: the steady rate, and in each epoch once the time to its first batch.

    Args:
        timed: One run; of several epochs, the first does not count: workers that persist are started in it only.
        num_samples: Of an epoch; None: not known, epochs are taken for endless.
    """
    if timed.window is None:
        return None
    steady = timed.window.rate_per_s
    starts = [one.ending_s + one.make_s + one.first_batch_s for one in timed.starts]
    if not num_samples or not starts:
        return steady
    later = starts[1:] if len(starts) > 1 else [] if timed.setting.persistent_workers else starts
    if not later:
        return steady
    if _has_starts(timed):
        return steady
    in_batch = timed.steps.num_samples[0] if timed.steps.num_samples else 0
    # The first batch is one of the epoch's: only what its way took longer than a batch's share is added.
    extra_s = max(statistics.median(later) - in_batch / steady, 0.0)
    return num_samples / (num_samples / steady + extra_s)


def _has_starts(timed: Timed) -> bool:
    """True if the window holds first batches of epochs: epochs that are too short for a steady part count as wholes."""
    assert timed.window is not None
    epochs = timed.steps.epochs
    return any(place == 0 or epochs[place] != epochs[place - 1] for place in timed.window.places)
