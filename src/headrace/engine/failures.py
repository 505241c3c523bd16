"""What to do with a sample that cannot be loaded: raise (the default), skip, or replace; and when enough is enough.

A policy never moves another sample: every other sample keeps its position, its batch and its random draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from headrace.engine.work import Refusal
from headrace.errors import ConfigurationError, TooManyRefused, Where, nearest

__all__ = ["Budget", "Policy", "Replace", "Skip", "parse_policy"]

PROBATION = 100
"""Samples before a rate is judged, so that a bad first sample does not read as 100 %. The value is spdl's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Skip:
    """Leaves out samples that cannot be loaded; the batch is shorter, every refusal is in `loader.quarantine`.

    Args:
        max_rate: Largest share of refused samples, judged after the first 100 samples of a pass. Default 1 %: more
            than that is a fault of the data set, not of a sample. None = no limit.
        max_count: Largest number of refused samples in one pass. None = no limit.

    Raises:
        TooManyRefused: while iterating, when a limit is passed.
    """

    max_rate: float | None = 0.01
    max_count: int | None = None

    def __post_init__(self) -> None:
        _check_limits(self.max_rate, self.max_count)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replace:
    """Delivers another sample in place of one that cannot be loaded, drawn by key from (seed, epoch, position).

    The same sample replaces it under every worker count, runner, rank layout and resume. `loader.last.is_replaced`
    flags it, and `loader.quarantine` lists the refused sample with the replacement.

    Args:
        max_rate: As for `Skip`.
        max_count: As for `Skip`.
        max_attempts: Draws per position before the failure is raised after all. Default 8: with 1 % of bad samples,
            eight bad draws in a row happen once in 10^16 positions.
    """

    max_rate: float | None = 0.01
    max_count: int | None = None
    max_attempts: int = 8

    def __post_init__(self) -> None:
        _check_limits(self.max_rate, self.max_count)
        if self.max_attempts < 1:
            raise ConfigurationError(f"Replace(max_attempts={self.max_attempts}): at least 1 draw is needed")


Policy = Skip | Replace | None
"""None = raise."""


def _check_limits(max_rate: float | None, max_count: int | None) -> None:
    if max_rate is not None and not 0 <= max_rate <= 1:
        raise ConfigurationError(f"max_rate={max_rate}: a rate lies between 0 and 1", do="max_rate=1/1000")
    if max_count is not None and max_count < 0:
        raise ConfigurationError(f"max_count={max_count}: a count is 0 or more")


def parse_policy(on_error: Any) -> Policy:
    """Returns the policy that the loader's `on_error` argument stands for."""
    if isinstance(on_error, (Skip, Replace)):
        return on_error
    words: dict[str, Policy] = {"raise": None, "skip": Skip(), "replace": Replace()}
    if isinstance(on_error, str) and on_error in words:
        return words[on_error]
    hint = nearest(on_error, words) if isinstance(on_error, str) else ""
    raise ConfigurationError(
        f"on_error={on_error!r}: expected 'raise', 'skip', 'replace', Skip(...) or Replace(...){hint}",
        do="on_error=hr.Skip(max_rate=1/1000)",
    )


class Budget:
    """Counts refusals over one pass, and raises when the policy's limit is passed.

    Kept in the main process and fed in the order of delivery, so that it trips at the same sample under every runner.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._num_seen = 0
        self._num_refused = 0

    def spend(self, num_samples: int, refusals: Sequence[Refusal]) -> None:
        """Counts one delivery; raises TooManyRefused if it goes over the limit."""
        self._num_seen += num_samples
        self._num_refused += len(refusals)
        if self._policy is None or not refusals:
            return
        count, rate = self._policy.max_count, self._policy.max_rate
        over_count = count is not None and self._num_refused > count
        over_rate = rate is not None and self._num_seen >= PROBATION and self._num_refused > rate * self._num_seen
        if not (over_count or over_rate):
            return
        limit = f"max_count={count}" if over_count else f"max_rate={rate:g}"
        last = refusals[-1]
        raise TooManyRefused(
            f"{self._num_refused:,} of {self._num_seen:,} samples were refused; the policy allows {limit}",
            where=Where(
                sample_id=last.sample_id,
                index=last.index,
                path=last.path,
                stage=last.stage,
                epoch=last.epoch,
                position=last.position,
            ),
            why=f"the last one: {last.error}",
            do=[
                "headrace diagnose TARGET --full    to list every bad sample with its cause",
                "loader.quarantine    holds those met so far",
            ],
        )
