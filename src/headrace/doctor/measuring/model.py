"""The result of a measurement: everything that a report shows and a program reads. None: not measured; 0: measured zero."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from headrace.doctor.meters.growth import MemoryGrowth
from headrace.doctor.meters.memory import MemorySeries
from headrace.doctor.meters.page_cache import CacheLabel
from headrace.doctor.meters.preflight import Preflight
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.period import Period
from headrace.doctor.statistics.rounds import Rounds
from headrace.doctor.statistics.utilisation import Ceiling
from headrace.doctor.statistics.waits import QuantileEstimate
from headrace.doctor.timing.timed import EpochStart, Kind, Stage, Timed

__all__ = [
    "SCHEMA", "Arm", "Cause", "CauseFound", "Conclusion", "Decomposition", "Estimate", "KnockOut", "Known", "Measurement", "MemoryUse",
    "PlainRow", "Resources", "RoundRun", "Scope", "StageRow", "Waiting",
]  # fmt: skip

SCHEMA = 1
UNBOUNDED = Interval(-math.inf, math.inf)
"""Too few rounds to say."""

Cause = Literal[
    "compute",
    "read",
    "decode",
    "transform",
    "sample",
    "collate",
    "handover",
    "transfer",
    "slow worker",
    "tail",
    "epoch start",
    "oversubscription",
    "burst",
    "memory",
    "needless workers",
    "interference",
    "lock",
    "unexplained",
]
"""What limits a loop.

compute: the training step; nothing to win from data. read ... transfer: a stage, see `timing.timed.Stage`. slow worker: one
of several. tail: few slow samples cause most of the waiting. epoch start: workers are started anew each epoch. oversubscription:
more runnable threads than cores. burst: steps of very different lengths, and too little prepared ahead. memory: batches prepared
ahead need more than there is. needless workers: they cost more than they bring. interference: the loader slows the step down
while it never makes it wait. lock: threads take turns at the interpreter. unexplained: model and experiment do not agree.
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number and where it lies with 95 % confidence."""

    value: float
    interval: Interval = UNBOUNDED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a number includes. Numbers of different scope are not compared."""

    is_local: bool | None
    """False: read over a network; None: nothing is read from files, or it is not known."""
    decodes: bool | None
    """True: compressed images, sound or the like are decoded."""
    is_random: bool | None
    """True: transforms draw at random."""
    cache: CacheLabel
    left_out: tuple[str, ...] = ()
    """What was left out of the rates: batches in flight at both ends, epoch starts."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlainRow:
    """One row of the plain table: a number of workers, an epoch."""

    num_workers: int
    epoch: int
    """1 or 2."""
    seconds: tuple[float, ...]
    """Of every round, for `num_samples` samples; starting workers counts."""
    num_samples: int
    start_s: float
    """Of those, to the first batch: median."""
    rates_per_s: tuple[float, ...]
    """Samples per second once every worker has delivered, of every round."""
    unit: Literal["Mpixel", "token", "MB"] | None
    """The second unit that fits; None: none does."""
    units_per_s: float | None
    padding_share: float | None
    """Part of the token places that is padding."""
    checked: str
    """What was compared with 0 workers: `ids, shapes, targets`; or why not."""
    is_same: bool | None
    """False: the data are not those of 0 workers; None: not compared. The reference row: True."""
    cache: CacheLabel


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoundRun:
    """One round, in a child of its own."""

    id: str
    """`r07`: evidence is named by it."""
    arm: str
    """`I`, `C`, `L without decode`, `plain workers=0`, ..."""
    block: int | None
    """Of the schedule; None: outside of it."""
    is_control: bool
    timed: Timed | None
    """None: it failed; see `failure`."""
    failure: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """All rounds of one kind of run."""

    name: str
    kind: Kind
    num_workers: int
    rounds: Rounds
    """Samples per second."""
    step_s: Estimate
    """Seconds of a step: samples in a batch over the rate."""
    cache: CacheLabel
    ids: tuple[str, ...]
    """Of the rounds."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """Where a step's time goes. Seconds per step."""

    total_s: Estimate
    """T(I)."""
    compute_s: Estimate
    """T(C)."""
    transfer_s: Estimate | None
    """T(Ct) - T(C); None: no device, or no copy to measure."""
    interference_s: Estimate | None
    """T(N) - T(C); None: without workers the loader does not work beside the step."""
    waiting_s: Estimate
    """What is left: T(I) - T(N), or T(I) - T(C) where there is no N, without the transfer. The four add up to the total."""
    harmless_s: float | None
    """Waiting of the host that the device's queue hid; None: no device."""
    utilisation: Estimate
    """Accelerator utilisation as MLPerf Storage defines it: compute time over total time of the steady part, T(C) / T(I).
    Its line is 0.9."""
    headroom: Estimate
    """The most that work on data can win, as a share: T(I) / T(C) - 1."""
    supply_ratio: Estimate | None
    """R(L) / R(C): from 1.25 on there is comfort; None: the loader did not run alone."""
    is_supply_paired: bool = True
    """False: no block held both; rounds from different parts of the measurement are held against each other."""
    overlap: float | None
    """(T(L) + T(C) - T(I)) / (T(L) + T(C) - max(T(L), T(C))): 1 perfect, 0 serial, below 0 each slows the other."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The waits of the real loop, over all its rounds, epoch starts apart."""

    quantiles: tuple[QuantileEstimate, ...]
    longest_s: float
    share: Estimate
    """Of the steps' time, over the rounds."""
    starved_share: float
    """Steps that wait more than 1 ms and 5 % of the median step of the consumer."""
    tail_share: float
    """Part of all waiting that the worst 1 % of steps cause."""
    holding_share: float
    """Part of the steps, the longest waits first, that hold four fifths of all waiting: small if few steps cause it."""
    period: Period | None
    """Of the seconds that batches took in their workers; None: fewer than two workers, or too few batches."""
    head_of_line_share: float | None
    """Part of the waiting during which a later batch was ready and the next one was not; None: not accounted."""
    ready_ahead_s: float | None
    """Median seconds that a batch is ready before it is taken; None: not accounted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One stage of the loader."""

    stage: Stage
    wall_ms: float
    """Per sample."""
    cpu_ms: float | None
    share: float
    """Of the workers' time."""
    kind: Literal["cpu", "disk", "waiting", "copy", "unknown"]
    gain: Estimate | None
    """What the loader alone would gain if it cost nothing, as a share, measured by knocking it out; None: not measured."""
    is_limit: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnockOut:
    """What an experiment without a stage showed."""

    stage: Stage
    gain: Estimate
    """Rate of the loader alone without it over the rate with it, minus 1."""
    predicted: float | None
    """By the utilisation law; None: the stage was not accounted."""
    ids: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Of the loop in its present setting."""

    series: MemorySeries
    growth: MemoryGrowth | None
    batch_bytes: int
    ahead_bytes: int
    """Batches in flight x bytes of one: what preparing ahead holds at most."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the loop needs for one accelerator at the speed of its training step, and times 2, 4, 8."""

    num_accelerators: int
    samples_per_s: float
    cores: float
    """Of loader and hand-over, at the measured CPU seconds per sample."""
    workers: int | None
    """None: the wall time of a sample is not known."""
    memory_bytes: int | None
    shm_bytes: int | None
    storage_bytes_per_s: float | None
    """Logical; what the page cache serves is in it."""
    requests_per_s: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CauseFound:
    """One thing that limits the loop, with its evidence."""

    cause: Cause
    text: str
    """One sentence: what, where, how much."""
    gain: Estimate | None
    """What the loop would gain without it, as a share; None: not measured."""
    basis: Literal["experiment", "accounted", "observed"]
    evidence: tuple[str, ...]
    """Round ids."""
    remedy: tuple[str, ...] = ()
    """What to do, the simplest first; what only `headrace tune` can prove is said so."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The verdict."""

    verdict: Literal["healthy", "limited", "inconclusive", "supply"]
    """healthy: data work could win less than matters. inconclusive: the rounds do not tell; `settling` says what would.
    supply: no training step was given, so what is needed is not known; `causes` say what limits the loader alone."""
    sentence: str
    causes: tuple[CauseFound, ...]
    """The one that matters most first; of a healthy loop only what costs something else than time, if anything."""
    settling: str = ""
    """Why it is inconclusive and what would settle it; empty: it is not."""

    @property
    def exit_status(self) -> int:
        """0 healthy or only the supply asked for, 1 limited, 3 inconclusive."""
        return {"healthy": 0, "supply": 0, "limited": 1, "inconclusive": 3}[self.verdict]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known beside the rounds."""

    spec: str
    command: str
    created: str
    kind: str
    """Class of the loader."""
    num_samples: int | None
    batch_size: int | None
    num_workers: int
    num_batches: int | None
    """Of an epoch; None: it does not say."""
    is_persistent: bool | None
    """`persistent_workers`; None: there are no workers, or it is not known."""
    consumer: str | None
    """None: no training step was given."""
    is_emulated: bool
    seed: int
    budget_s: float
    used_s: float
    preflight: Preflight
    memory: MemoryUse | None = None
    busy_threads: float | None = None
    """Threads that compute at a time in one worker, by their processor time; None: no workers, or not told."""
    left_out: tuple[str, ...] = ()
    """What was not measured, and why, or with what budget it would be."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Known):
    """Everything."""

    scope: Scope
    plain: tuple[PlainRow, ...]
    plain_says: str
    """The plain table's conclusion in words."""
    runs: tuple[RoundRun, ...]
    """Every round, in the order in which they ran."""
    arms: tuple[Arm, ...]
    starts: tuple[EpochStart, ...]
    """Of one round of the real loop: first epoch and later ones."""
    decomposition: Decomposition | None
    """None: no training step was given: the loader alone was measured."""
    waiting: Waiting | None
    stages: tuple[StageRow, ...]
    knock_outs: tuple[KnockOut, ...]
    ceiling: Ceiling | None
    """By the utilisation law."""
    noise: Estimate | None
    """Two entries of the present setting against each other, as a ratio; None: no control was run."""
    need_per_s: Estimate | None
    """Rate of the training step plus the margin."""
    resources: tuple[Resources, ...]
    conclusion: Conclusion
    schema: int = SCHEMA

    def _repr_html_(self) -> str | None:
        """Verdict and causes, for notebooks; None: jinja2 is not installed, and the notebook shows the text."""
        from headrace.doctor.measuring.page.render import render_short  # only for who looks at it
        from headrace.errors import MissingExtra

        try:
            return render_short(self)
        except MissingExtra:
            return None
