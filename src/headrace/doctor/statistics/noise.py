"""The noise floor: what two entries of the same setting differ by, in the very schedule of the comparison."""

from __future__ import annotations

import dataclasses

from headrace.doctor.statistics.pairs import Effect, Pairs, bootstrap_effect

__all__ = ["NoiseFloor", "noise_floor"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What this schedule on this machine can make equal settings look like."""

    bound_log: float
    """Equal settings seem to differ by at most this log ratio, with 95 % confidence; infinite: too few blocks to
    say."""
    effect: Effect
    """The control against the present setting: both are the same, so all of it is noise."""


def noise_floor(control: Pairs, *, seed: int = 0) -> NoiseFloor:
    """Bounds the absolute mean log ratio of the control to the present setting from above, with 95 % confidence.

    The bound is the far end of the 90 % interval (each end is a one-sided 95 % bound). It is about the mean over
    blocks, as the verdict is: it becomes smaller with more blocks, and stays where something favours one of two equal
    settings. A bound for single blocks would never become smaller, and no amount of measuring could then settle a small
    difference.

    Args:
        control: The control arm against the present setting.
        seed: As in `bootstrap_effect`.
    """
    effect = bootstrap_effect(control, seed=seed)
    return NoiseFloor(bound_log=effect.interval_90.farthest, effect=effect)
