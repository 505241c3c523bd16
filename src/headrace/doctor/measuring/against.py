"""Two measurements of one loop at two times: what became better or worse, as far as that can be told. Pure.

Rounds of two sessions are not interleaved: the machine may have been another one in between. So absolute rates are shown and
never judged. Judged are ratios whose two sides ran in one session, block by block: the step alone against the loop
(accelerator utilisation), and the loader alone against the step (supply over need). A faster or slower machine, or a noisier
one, moves both sides.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from typing import Any, Literal

import msgspec

from headrace.doctor.measuring.model import SCHEMA, Estimate, Measurement
from headrace.doctor.statistics.interval import Interval
from headrace.errors import ConfigurationError

__all__ = ["Against", "Ratio", "Then", "compare_with", "load"]

LEAST = 0.02
"""A change of a ratio below 2 % is nothing that a build should fail for."""

Outcome = Literal["same", "better", "worse", "not told"]


class _Bounds(msgspec.Struct):
    low: float | None
    high: float | None


class _Estimate(msgspec.Struct):
    value: float | None
    interval: _Bounds


class _Decomposition(msgspec.Struct):
    utilisation: _Estimate
    supply_ratio: _Estimate | None = None
    is_supply_paired: bool = True


class _Cache(msgspec.Struct):
    label: str


class _Scope(msgspec.Struct):
    cache: _Cache
    is_local: bool | None = None
    decodes: bool | None = None
    is_random: bool | None = None


class _Rounds(msgspec.Struct):
    mean_per_s: float


class _Arm(msgspec.Struct):
    name: str
    rounds: _Rounds


class _Cause(msgspec.Struct):
    cause: str


class _Conclusion(msgspec.Struct):
    verdict: str
    causes: list[_Cause]


class Then(msgspec.Struct):
    """What is needed of an earlier report."""

    schema: int
    spec: str
    created: str
    kind: str
    batch_size: int | None
    num_workers: int
    consumer: str | None
    scope: _Scope
    arms: list[_Arm]
    conclusion: _Conclusion
    decomposition: _Decomposition | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One ratio, then and now."""

    name: str
    then: Estimate
    now: Estimate
    change: Estimate
    """now / then; above 1 is better."""
    outcome: Outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The comparison."""

    created: str
    """When the earlier report was made."""
    differs: tuple[str, ...]
    """What makes the two not comparable; with any, nothing is judged."""
    changed: tuple[str, ...]
    """What was changed between them, and may be the reason."""
    ratios: tuple[Ratio, ...]
    rates: tuple[tuple[str, float | None, float | None], ...]
    """(arm, samples/s then, now): shown, not judged."""
    verdict_then: str
    causes_then: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """worse: some ratio is; better: some is and none is worse; not told: nothing could be judged."""
        outcomes = {one.outcome for one in self.ratios}
        order: tuple[Outcome, ...] = ("worse", "better", "same")
        return "not told" if self.differs else next((one for one in order if one in outcomes), "not told")

    @property
    def exit_status(self) -> int:
        """0 the same or better, 1 worse, 3 not told."""
        return {"worse": 1, "not told": 3}.get(self.outcome, 0)


def load(path: str | os.PathLike[str]) -> Then:
    """Reads an earlier report of `headrace measure --format json`.

    Raises:
        ConfigurationError: the file cannot be read, or is no such report.
    """
    do = ["headrace measure ... --format json --output baseline.json    writes one"]
    try:
        told = msgspec.json.decode(pathlib.Path(path).read_bytes(), type=Then)
    except OSError as error:
        raise ConfigurationError(f"baseline {os.fspath(path)}: {error.strerror}", do=do) from None
    except msgspec.DecodeError as error:
        raise ConfigurationError(
            f"baseline {os.fspath(path)} is no report of headrace measure: {error}", do=do
        ) from None
    if told.schema != SCHEMA:
        raise ConfigurationError(
            f"baseline {os.fspath(path)}: schema {told.schema}, this headrace reads {SCHEMA}", do=do
        )
    return told


def compare_with(then: Then, now: Measurement) -> Against:
    """Holds a measurement against an earlier one."""
    differs = tuple(_differences(then, now))
    arms_now = {arm.name: arm.rounds.mean_per_s for arm in now.arms}
    arms_then = {arm.name: arm.rounds.mean_per_s for arm in then.arms}
    return Against(
        created=then.created,
        differs=differs,
        changed=tuple(_changes(then, now)),
        ratios=() if differs else tuple(_ratios(then, now)),
        rates=tuple(
            (name, arms_then.get(name), arms_now.get(name)) for name in ("I", "C", "L") if name in arms_then | arms_now
        ),
        verdict_then=then.conclusion.verdict,
        causes_then=tuple(one.cause for one in then.conclusion.causes),
    )


def _differences(then: Then, now: Measurement) -> list[str]:
    """Scope: an apparent gain may be work that was left out."""
    pairs: list[tuple[str, Any, Any]] = [
        ("cache", then.scope.cache.label, now.scope.cache.label),
        ("training step", then.consumer, now.consumer),
        ("batch size", then.batch_size, now.batch_size),
        ("decoding", then.scope.decodes, now.scope.decodes),
        ("local files", then.scope.is_local, now.scope.is_local),
        ("random transforms", then.scope.is_random, now.scope.is_random),
    ]
    return [f"{name}: {_word(a)} then, {_word(b)} now" for name, a, b in pairs if a != b]


def _changes(then: Then, now: Measurement) -> list[str]:
    pairs: list[tuple[str, Any, Any]] = [
        ("TARGET", then.spec, now.spec),
        ("loader", then.kind, now.kind),
        ("workers", then.num_workers, now.num_workers),
    ]
    return [f"{name}: {a} then, {b} now" for name, a, b in pairs if a != b]


def _word(value: Any) -> str:
    return {None: "not known", True: "yes", False: "no"}.get(value, str(value))


def _ratios(then: Then, now: Measurement) -> list[Ratio]:
    d = now.decomposition
    if then.decomposition is None or d is None:
        return []
    sides = [("accelerator utilisation", then.decomposition.utilisation, d.utilisation)]
    is_paired = then.decomposition.is_supply_paired and d.is_supply_paired
    if is_paired and then.decomposition.supply_ratio is not None and d.supply_ratio is not None:
        sides.append(("supply over need", then.decomposition.supply_ratio, d.supply_ratio))
    return [_ratio(name, _as_estimate(one), other) for name, one, other in sides if one.value]


def _ratio(name: str, then: Estimate, now: Estimate) -> Ratio:
    """The quotient, its interval by the rule of independent errors on the log scale."""
    reach = math.hypot(_reach(then), _reach(now))
    log = math.log(now.value / then.value) if now.value > 0 and then.value > 0 else math.nan
    interval = Interval(log - reach, log + reach).exp() if math.isfinite(reach) else Interval(0.0, math.inf)
    margin = 1 + LEAST
    outcome: Outcome = "not told"
    if interval.low > margin:
        outcome = "better"
    elif interval.high < 1 / margin:
        outcome = "worse"
    elif 1 / margin < interval.low and interval.high < margin:
        outcome = "same"
    return Ratio(
        name=name, then=then, now=now, change=Estimate(value=math.exp(log), interval=interval), outcome=outcome
    )


def _reach(estimate: Estimate) -> float:
    """Half the width of the interval, as a log ratio."""
    low, high = estimate.interval.low, estimate.interval.high
    if not (0 < low <= high < math.inf):
        return math.inf
    return math.log(high / low) / 2


def _as_estimate(told: _Estimate) -> Estimate:
    """JSON has no infinity: null stands for an end that nothing bounds."""
    low, high = told.interval.low, told.interval.high
    return Estimate(
        value=told.value or math.nan,
        interval=Interval(-math.inf if low is None else low, math.inf if high is None else high),
    )
