"""The utilisation law: what rate the stages and the cores allow, and which of them binds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

__all__ = ["Ceiling", "Demand", "agrees", "ceiling", "predicted_gains"]

CORES = "cores"
"""The name under which all stages' shared cores are listed among what may bind."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one sample asks of one stage."""

    stage: str
    wall_s: float
    """Seconds that a sample occupies one server of the stage."""
    cpu_s: float
    """Seconds of those that it computes; the rest it waits, and leaves the core to others."""
    num_servers: int
    """How many samples the stage works on at a time: workers, threads, connections; 1 for what runs in the loop's
    process."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The highest rate that the demands allow."""

    rate_per_s: float
    """Samples per second; infinite if nothing costs time."""
    binding: str | None
    """The stage that is fully used at this rate, or "cores"; None: nothing costs time."""
    occupancies: Mapping[str, float]
    """Share of each stage's servers, and of the cores, that is used at this rate, 0 to 1."""


def ceiling(demands: Sequence[Demand], *, num_cores: float) -> Ceiling:
    """Bounds the rate by min(servers / seconds per sample) over the stages, and by cores / CPU seconds of all stages.

    Queues, imbalance and interference only lower the rate, so a measured rate above the ceiling means wrong demands.

    Args:
        demands: One per stage, each with a different name.
        num_cores: Cores that may be used; a fraction where a container's quota is one.

    Source: utilisation law U = X D / m with U <= 1, Denning and Buzen, The operational analysis of queueing network
        models, 1978.
    """
    if len({CORES, *(one.stage for one in demands)}) <= len(demands):
        raise ValueError(f"stages must have different names, and none may be called {CORES!r}")
    # Share of the servers that one sample per second uses.
    shares = {one.stage: one.wall_s / one.num_servers for one in demands}
    shares[CORES] = sum(one.cpu_s for one in demands) / num_cores
    binding = max(shares, key=shares.__getitem__)
    if shares[binding] <= 0:
        return Ceiling(rate_per_s=math.inf, binding=None, occupancies=dict.fromkeys(shares, 0.0))
    return Ceiling(
        rate_per_s=1 / shares[binding],
        binding=binding,
        occupancies={name: share / shares[binding] for name, share in shares.items()},
    )


def predicted_gains(demands: Sequence[Demand], *, num_cores: float) -> dict[str, float]:
    """How much the ceiling would rise if a stage cost nothing, as a share, for each stage: the experiment's forecast.

    Zero for every stage but the binding one where a stage binds; where cores bind, for every stage that computes, more
    than zero. Infinite where nothing else costs time.
    """
    rate = ceiling(demands, num_cores=num_cores).rate_per_s
    return {
        one.stage: ceiling([other for other in demands if other is not one], num_cores=num_cores).rate_per_s / rate - 1
        for one in demands
        if math.isfinite(rate)
    }


def agrees(predicted: Mapping[str, float], measured: Mapping[str, float]) -> bool:
    """True if the stage whose removal gained most is the one of which the model says so.

    False: unexplained. Something that the model does not hold costs time: handing over between processes, a lock,
    memory bandwidth.

    Args:
        predicted: From `predicted_gains`.
        measured: Rate without a stage over the rate with it, minus 1, for each stage that was removed; others do not
            count.
    """
    common = [stage for stage in predicted if stage in measured]
    if not common:
        return False
    bottleneck = max(common, key=predicted.__getitem__)
    return predicted[bottleneck] > 0 and max(common, key=measured.__getitem__) == bottleneck
