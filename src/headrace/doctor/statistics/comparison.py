"""From the rounds of one schedule to everything that can be said about its settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from headrace.doctor.statistics.drift import Drift, theil_sen
from headrace.doctor.statistics.noise import NoiseFloor, noise_floor
from headrace.doctor.statistics.pairs import Pairs, pairs
from headrace.doctor.statistics.rounds import Round, Rounds, describe
from headrace.doctor.statistics.verdict import Verdict, judge

__all__ = ["Comparison", "compare"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the rounds say about each setting, and about each candidate against the present one."""

    settings: Mapping[str, Rounds]
    """Each setting by itself; the present one with the rounds of its control."""
    floor: NoiseFloor | None
    """None: in no block did the present setting run twice in both entries."""
    drift: Drift | None
    """Of the present setting; None: it has fewer than two rounds."""
    pairs: Mapping[str, Pairs]
    """Each candidate's log ratios to the present setting."""
    verdicts: Mapping[str, Verdict]
    """For each candidate that has a block, if there is a noise floor."""


def compare(rounds: Sequence[Round], *, present: str, seed: int = 0) -> Comparison:
    """Compares all settings of a schedule with the present one.

    Args:
        rounds: In any order; rounds that failed are left out, their blocks then do not count for the pairs they belong
            to.
        present: The setting that was entered twice.
        seed: Of all draws.
    """
    in_order = sorted(rounds, key=lambda one: one.began_s)
    names = list(dict.fromkeys([present, *(one.slot.setting for one in in_order)]))
    by_setting = {name: [one for one in in_order if one.slot.setting == name] for name in names}
    control = pairs(in_order, present, present, candidate_is_control=True)
    floor = noise_floor(control, seed=seed) if control.log_ratios else None
    own = by_setting[present]
    has_trend = len({one.began_s for one in own}) > 1
    drift = theil_sen([one.began_s for one in own], [one.rate_per_s for one in own]) if has_trend else None
    against = {name: pairs(in_order, name, present) for name in names if name != present}
    measured = {name: both for name, both in against.items() if both.log_ratios}
    return Comparison(
        settings={name: describe([one.rate_per_s for one in own]) for name, own in by_setting.items() if own},
        floor=floor,
        drift=drift,
        pairs=against,
        verdicts={}
        if floor is None
        else judge(measured, floor=floor, drift=drift, block_s=_block_s(in_order), seed=seed),
    )


def _block_s(in_order: Sequence[Round]) -> float:
    """Seconds from the beginning of one block to that of the next, on average, start-up of rounds included."""
    num_blocks = len({one.slot.block for one in in_order})
    per_round = (in_order[-1].began_s - in_order[0].began_s) / max(len(in_order) - 1, 1)
    return per_round * len(in_order) / num_blocks
