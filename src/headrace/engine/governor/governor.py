"""The decision: from what one setting was seen to do, which one to try next. Pure: no clock, no threads, no processes.

The aim is not the highest speed but the least cost at which the consumer does not wait:

1. Begin in the caller. If loading takes no time worth mentioning, stay.
2. Otherwise Little's law says how many workers keep pace with the consumer: time per batch / its time per step.
3. Look at what they do. Enough: try fewer, between what is known to be too few and what is known to be enough.
   Too few: more, as far as cores and memory go. No better than before: back to what was cheaper. No more to be had:
   the other runner, with as many.
4. Settle. Look again only when the consumer waits for long where it did not.

Every comparison leaves a margin, and every trial narrows what is left to try, so it ends and does not swing.
"""

from __future__ import annotations

import dataclasses
import math

from headrace.observe import Decision

__all__ = ["Governor", "Limits", "Observation", "Setting"]

WAIT_SHARE = 0.02
"""Share of the loop's time that the consumer may wait before it counts as starved."""
GAIN = 1.1
"""A dearer setting must deliver this many times as much to be kept: differences below are noise."""
RIVAL_GAIN = 1.05
"""Another runner with as many workers costs memory, and no core: it must deliver this many times as much to be kept."""
HEADROOM = 1.1
"""Workers beyond the exact need, for steps that are shorter than others."""
SLEEPY_SHARE = 0.5
"""Work that uses the processor for less than this share of its time sleeps, and may exceed the number of cores."""
MAX_SLEEPERS = 256
MAX_PREFETCH = 8
PATIENCE = 4
"""Starved rounds in a row after which a settled governor looks again; doubled each time."""

_NO_LIMIT = 2**62


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """Who executes."""

    runner: str
    """inline, threads, host or processes."""
    num_workers: int
    prefetch_factor: int = 2

    @property
    def max_in_flight(self) -> int:
        """Batches that exist at once."""
        return self.num_workers * self.prefetch_factor + 1

    def __str__(self) -> str:
        if self.num_workers == 0:
            return self.runner
        return f"{self.runner} x {self.num_workers}, prefetch {self.prefetch_factor}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One round: what a setting was seen to do, after it had warmed up."""

    num_batches: int
    wall_s: float
    """Seconds of the round."""
    wait_s: float
    """Seconds of it in which the consumer waited for a batch."""
    service_s: float
    """Seconds that one batch takes one worker, on average."""
    cpu_share: float | None = None
    """Processor time / wall time of that; None = not measured."""
    batch_bytes: int = 0
    """Memory of one batch."""

    @property
    def wait_share(self) -> float:
        """Share of the round that was waiting."""
        return self.wait_s / self.wall_s if self.wall_s else 0.0

    @property
    def rate(self) -> float:
        """Batches per second."""
        return self.num_batches / self.wall_s if self.wall_s else 0.0

    @property
    def step_s(self) -> float:
        """Seconds that the consumer needs for one batch."""
        return max(self.wall_s - self.wait_s, 0.0) / max(self.num_batches, 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may never be exceeded."""

    num_cores: int
    memory_bytes: int
    """For all batches that exist at once."""
    runners: tuple[str, ...]
    """Runners with workers that may be used, the preferred first; empty = only the caller."""


class Governor:
    """Holds the setting in force; `observe` may change it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.setting = Setting("inline", 0)
        self.is_settled = False
        self._best: tuple[Setting, float] | None = None
        self._too_few = 0
        self._tries_rival = False
        self._enough: int | None = None
        self._cap = 0
        self._batch_bytes = 0
        self._num_starved = 0
        self._patience = PATIENCE
        self._settled_share = 0.0

    # ---- what happened ----------------------------------------------------------------------------------------------

    def observe(self, seen: Observation, time_s: float) -> Decision | None:
        """Judges one round under the setting in force; returns what was decided, or None if all stays as it is."""
        before = self.setting
        self._batch_bytes = max(self._batch_bytes, seen.batch_bytes)
        if self.is_settled:
            reason = self._watch(seen)
        elif self.setting.num_workers == 0:
            reason = self._leave_caller(seen)
        else:
            reason = self._judge(seen)
        if reason is None:
            return None
        return Decision(
            time_s=time_s,
            before=str(before),
            after=str(self.setting),
            reason=reason,
            wait_share=seen.wait_share,
            batches_per_s=seen.rate,
            service_s=seen.service_s,
        )

    def refuse(self, runner: str, why: str, time_s: float) -> Decision:
        """Takes note that a runner cannot be used for this data, and goes on with the next one, or in the caller."""
        before = self.setting
        runners = tuple(name for name in self.limits.runners if name != runner)
        self.limits = dataclasses.replace(self.limits, runners=runners)
        if runners:
            self.setting = self._fit(runners[0], min(before.num_workers, self.limits.num_cores), before.prefetch_factor)
            self._cap = min(self._cap, self.limits.num_cores)
        else:
            self.setting, self.is_settled = Setting("inline", 0), True
        self._best, self._too_few, self._enough, self._tries_rival = None, 0, None, False
        return Decision(time_s=time_s, before=str(before), after=str(self.setting), reason=f"{runner}: {why}")

    # ---- what follows -----------------------------------------------------------------------------------------------

    def _leave_caller(self, seen: Observation) -> str:
        self._best = (self.setting, seen.rate)
        if seen.wait_share <= WAIT_SHARE:
            return self._settle(self.setting, "the loop hardly waits: workers would cost more than they bring", seen)
        if not self.limits.runners:
            return self._settle(self.setting, "no workers can be used for this data", seen)
        sleeps = seen.cpu_share is not None and seen.cpu_share < SLEEPY_SHARE
        self._cap = self.limits.num_cores
        if sleeps:
            # As many sleepers as together keep the cores busy while they are awake.
            awake = max(seen.cpu_share or 0.0, 1e-3)
            self._cap = max(self._cap, min(MAX_SLEEPERS, int(self.limits.num_cores / awake)))
        self._cap = self._fit(self.limits.runners[0], self._cap, 1).num_workers
        need = self._cap if seen.step_s <= 0 else math.ceil(min(self._cap, HEADROOM * seen.service_s / seen.step_s))
        self._too_few, self._enough = 0, None
        self.setting = self._fit(self.limits.runners[0], max(1, min(need, self._cap)), 2)
        kind = "mostly sleeps" if sleeps else "computes"
        return (
            f"a batch takes {_ms(seen.service_s)} and {kind}, a step {_ms(seen.step_s)}: "
            f"{self.setting.num_workers} would keep pace, of at most {self._cap}"
        )

    def _judge(self, seen: Observation) -> str:
        num = self.setting.num_workers
        best, best_rate = self._best if self._best is not None else (self.setting, 0.0)
        if self._tries_rival:
            self._tries_rival = False
            if seen.rate < RIVAL_GAIN * best_rate:
                return self._settle(best, f"{self.setting} deliver hardly more than {best}, or less", seen)
            return self._settle(self.setting, f"{self.setting} deliver more than {best}", seen)
        if seen.wait_share <= WAIT_SHARE:
            self._enough, self._best = num, (self.setting, seen.rate)
            fewer = (self._too_few + num) // 2
            if fewer <= self._too_few or fewer > 0.8 * num:
                return self._settle(self.setting, f"{num} keep pace, {self._too_few} would not, or hardly", seen)
            self.setting = self._fit(self.setting.runner, fewer, self.setting.prefetch_factor)
            return f"{num} keep pace; trying fewer"
        if self._enough is not None:  # this was an attempt with fewer
            self._too_few = num
            fewer = (num + self._enough) // 2
            if fewer <= num or fewer > 0.8 * self._enough:
                return self._settle(best, f"{num} are too few, {self._enough} keep pace", seen)
            self.setting = self._fit(self.setting.runner, fewer, self.setting.prefetch_factor)
            return f"{num} are too few, {self._enough} keep pace; trying between"
        if seen.rate < GAIN * best_rate:
            return self._settle(best, f"{self.setting} deliver no more than {best}", seen)
        self._best, self._too_few = (self.setting, seen.rate), num
        deeper = self._fit(self.setting.runner, num, MAX_PREFETCH)
        if seen.service_s / num < 0.7 * seen.step_s and deeper != self.setting and deeper.num_workers == num:
            # On average they are fast enough: what is missing is a store for the moments when they are not.
            self.setting = deeper
            return "fast enough on average, but the loop waits now and then: more batches ready beforehand"
        more = self._fit(self.setting.runner, min(self._cap, 2 * num), self.setting.prefetch_factor)
        if more.num_workers <= num:
            rival = self._rival()
            if rival is not None:
                self._tries_rival = True
                self.setting = self._fit(rival, num, self.setting.prefetch_factor)
                return f"the loop still waits, and {num} is the most that cores and memory allow; trying {rival}"
            return self._settle(
                self.setting, f"the loop still waits, but {num} is the most that cores and memory allow", seen
            )
        self.setting = more
        return f"{num} help, but the loop still waits; trying more"

    def _rival(self) -> str | None:
        """The runner that has not been tried, where workers compute: threads of one process get in each other's way."""
        others = [name for name in self.limits.runners if name != self.setting.runner]
        is_first = self.setting.runner == self.limits.runners[0]
        return others[0] if others and is_first and self.setting.num_workers <= self.limits.num_cores else None

    def _watch(self, seen: Observation) -> str | None:
        """Settled: looks again when the loop waits for long where it did not wait when this was chosen."""
        is_worse = seen.wait_share > max(5 * WAIT_SHARE, 2 * self._settled_share)
        self._num_starved = self._num_starved + 1 if is_worse else 0
        if self._num_starved < self._patience:
            return None
        self._num_starved, self._patience = 0, 2 * self._patience
        self.is_settled, self._best = False, (self.setting, seen.rate)
        if self.setting.num_workers == 0:
            return self._leave_caller(seen)
        self._too_few, self._enough = self.setting.num_workers, None
        self._best = None
        return self._judge(seen)

    def _settle(self, setting: Setting, why: str, seen: Observation) -> str:
        self.setting, self.is_settled = setting, True
        self._settled_share = seen.wait_share
        self._num_starved = 0
        return f"settled: {why}"

    def _fit(self, runner: str, num_workers: int, prefetch_factor: int) -> Setting:
        """The setting asked for, or the nearest below that the memory allows: first fewer ready, then fewer workers."""
        room = self.limits.memory_bytes // self._batch_bytes if self._batch_bytes else _NO_LIMIT
        prefetch_factor = max(1, min(prefetch_factor, MAX_PREFETCH, (room - 1) // max(num_workers, 1)))
        return Setting(runner, max(1, min(num_workers, room - 1)), prefetch_factor)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
