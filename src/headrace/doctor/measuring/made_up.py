"""Made-up timed runs of loaders whose truth is known: for tests, for examples, and for the page.

A small simulation in virtual time: workers make batches in turn, at most so many ahead; a loop takes them in order. What is
wrong with the loader is written down in `World`; what `headrace measure` should say about it is then known beforehand.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from headrace.doctor.evidence.system import MachineFacts
from headrace.doctor.measuring.assemble import Found, assemble
from headrace.doctor.measuring.model import Measurement, RoundRun
from headrace.doctor.meters.page_cache import CacheLabel, Residency
from headrace.doctor.meters.preflight import Noise, Preflight
from headrace.doctor.report.model import Environment
from headrace.doctor.statistics.schedule import schedule
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.timed import (
    Amounts,
    BatchMade,
    EpochStart,
    Kind,
    Stage,
    StageUse,
    Steps,
    Timed,
    Window,
)

__all__ = ["WARM", "World", "machine"]

IN_WORKERS: tuple[Stage, ...] = ("read", "decode", "transform", "sample", "collate")
WARM = CacheLabel(label="warm-verified", before=1.0, after=1.0, why=None)


def machine(cores: int = 8, noise: Noise = "quiet") -> Preflight:
    """A made-up machine."""
    pressure = {"quiet": 1.0, "noisy": 25.0, "loud": 70.0}.get(noise)
    return Preflight(
        machine=MachineFacts(
            cores=cores,
            usable_cores=cores,
            free_memory_bytes=16 << 30,
            shm_size_bytes=8 << 30,
            shm_free_bytes=8 << 30,
            file_limit=65536,
            open_files=32,
            sharing_strategy="file_descriptor",
            cpu_pressure=pressure,
        ),
        noise=noise,
        memory_limit_bytes=32 << 30,
        start_method="fork",
        torch_threads=cores,
        governor=None,
        is_virtual=True,
        kernel="6.1",
        environment=Environment(
            python="3.11", platform="Linux", torch="2.13.0", numpy="2.3", headrace="0.1.0", usable_cores=cores
        ),
        cache=Residency(
            num_planned=1,
            num_seen=1,
            num_unseen=0,
            pages=100,
            resident_pages=100,
            means=frozenset({"cachestat"}),
            file_systems=frozenset({"ext4"}),
            blind_spots=(),
        ),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A loader, a training step and a machine. Milliseconds are per sample."""

    wall_ms: Mapping[Stage, float]
    """Of each stage; `handover` occupies the loop's process, all others a worker."""
    cpu_share: Mapping[Stage, float] = dataclasses.field(default_factory=dict)
    """Part of a stage's wall time that it computes. Default: 1, of `read` 0.1."""
    step_s: float = 0.02
    transfer_s: float = 0.0
    interference: float = 0.0
    """By how much of itself the step becomes longer while workers work."""
    burst: Sequence[float] = (1.0,)
    """The steps' lengths in turn, as multiples of `step_s`."""
    batch_size: int = 8
    num_workers: int = 2
    prefetch_factor: int = 2
    num_batches: int = 1000
    """Of an epoch."""
    worker_start_s: float = 0.1
    is_persistent: bool = False
    slow_worker: float = 1.0
    """Times that the last worker takes longer."""
    tail: tuple[float, float] = (0.0, 1.0)
    """(Chance, factor) of a sample that takes much longer."""
    cpu_inflation: float = 1.0
    """Times that computing takes longer with workers: threads that take turns."""
    cores: float = 8
    noise: float = 0.01
    """Standard deviation of a round's log speed, of loader and step alike."""
    sample_bytes: int = 100_000

    def measured(
        self,
        *,
        seed: int = 0,
        num_blocks: int = 3,
        has_step: bool = True,
        noise: Noise = "quiet",
        busy_threads: float | None = None,
    ) -> Measurement:
        """The whole measurement of this world."""
        return self.measured_from(
            self.rounds(num_blocks=num_blocks, seed=seed, has_step=has_step),
            seed=seed,
            has_step=has_step,
            noise=noise,
            busy_threads=busy_threads,
        )

    def measured_from(
        self,
        runs: Sequence[RoundRun],
        *,
        seed: int = 0,
        has_step: bool = True,
        noise: Noise = "quiet",
        busy_threads: float | None = None,
    ) -> Measurement:
        """What is made of some rounds of this world."""
        found = Found(
            spec="train.py:make_loader",
            command="headrace measure train.py:make_loader",
            created="2026-01-01T00:00:00+00:00",
            kind="torch.utils.data.dataloader.DataLoader",
            num_samples=self.num_batches * self.batch_size,
            batch_size=self.batch_size,
            num_workers=self.num_workers,
            num_batches=self.num_batches,
            is_persistent=self.is_persistent if self.num_workers else None,
            consumer=f"{1e3 * self.step_s:g} ms a step, busy (emulated)" if has_step else None,
            is_emulated=has_step,
            seed=seed,
            budget_s=60.0,
            used_s=52.0,
            preflight=machine(int(self.cores), noise),
            cache=WARM,
            is_local=True,
            busy_threads=busy_threads,
        )
        return assemble(found, runs)

    def timed(
        self,
        kind: Kind,
        *,
        seed: int = 0,
        window_s: float = 1.0,
        num_workers: int | None = None,
        without: tuple[Stage, ...] = (),
        accounts: bool = False,
        num_epochs: int | None = None,
        max_batches: int | None = None,
    ) -> Timed:
        """One round of this world."""
        run = _Run(self, kind, seed, self.num_workers if num_workers is None else num_workers, without)
        return run.timed(window_s, accounts=accounts, num_epochs=num_epochs, max_batches=max_batches)

    def rounds(self, *, num_blocks: int = 3, seed: int = 0, has_step: bool = True) -> list[RoundRun]:
        """All rounds of a measurement, in an order in which they might have run."""
        runs: list[RoundRun] = []

        def add(arm: str, timed: Timed, block: int | None = None, *, is_control: bool = False) -> None:
            runs.append(RoundRun(id=f"r{len(runs) + 1:02}", arm=arm, block=block, is_control=is_control, timed=timed))

        draws = np.random.default_rng(seed)

        def at() -> int:
            return int(draws.integers(1 << 31))

        for _ in range(3):
            for workers in dict.fromkeys([0, self.num_workers or 2]):
                plain = self.timed("L", seed=at(), num_workers=workers, num_epochs=2, max_batches=60)
                add(f"plain workers={workers}", plain)
        arms: list[Kind] = ["C", "L"]
        if self.num_workers:
            arms.append("N")
        if self.transfer_s:
            arms.append("Ct")
        if has_step:
            for slot in schedule("I", list(arms), num_blocks=num_blocks, seed=seed):
                kind: Kind = slot.setting  # type: ignore[assignment]
                add(slot.setting, self.timed(kind, seed=at()), slot.block, is_control=slot.is_control)
            add("I accounted", self.timed("I", seed=at(), accounts=True))
        add("L accounted", self.timed("L", seed=at(), accounts=True))
        stages: list[Stage] = [stage for stage in self.wall_ms if self.wall_ms[stage]]
        named = {f"L without {stage}": stage for stage in stages}
        for slot in schedule("L", list(named), num_blocks=2, seed=seed):
            without = (named[slot.setting],) if slot.setting in named else ()
            timed = self.timed("L", seed=at(), without=without)
            add(slot.setting, timed, 100 + slot.block, is_control=slot.is_control)
        return runs


class _Run:
    """One simulated round."""

    def __init__(self, world: World, kind: Kind, seed: int, num_workers: int, without: tuple[Stage, ...]) -> None:
        self.world, self.kind, self.num_workers, self.without = world, kind, num_workers, without
        self.draws = np.random.default_rng(seed)
        self.slowness = math.exp(world.noise * self.draws.standard_normal())
        self.step_slowness = math.exp(world.noise * self.draws.standard_normal())
        self.in_flight = num_workers * world.prefetch_factor

    def stage_s(self, stage: Stage) -> tuple[float, float]:
        """Wall and CPU seconds of one sample."""
        if stage in self.without or (stage == "handover" and not self.num_workers):
            return 0.0, 0.0
        world = self.world
        wall_s = world.wall_ms.get(stage, 0.0) / 1e3 * self.slowness
        cpu_s = wall_s * world.cpu_share.get(stage, 0.1 if stage == "read" else 1.0)
        if self.num_workers:
            wall_s += cpu_s * (world.cpu_inflation - 1)
            cpu_s *= world.cpu_inflation
        return wall_s, cpu_s

    def crowd(self) -> float:
        """Times that computing takes longer because more wants to compute than there are cores."""
        wall_s = sum(self.stage_s(stage)[0] for stage in IN_WORKERS)
        cpu_s = sum(self.stage_s(stage)[1] for stage in IN_WORKERS)
        busy = (self.num_workers or 1) * cpu_s / max(wall_s, 1e-9) + (self.kind in {"I", "N"} and self.num_workers > 0)
        return max(1.0, busy / self.world.cores)

    def batch_s(self, worker: int) -> tuple[float, float]:
        """Seconds to make one batch, and of its slowest sample."""
        world, crowd = self.world, self.crowd()
        one_s = 0.0
        for stage in IN_WORKERS:
            wall_s, cpu_s = self.stage_s(stage)
            one_s += wall_s + cpu_s * (crowd - 1)
        chance, factor = world.tail
        jitter = self.draws.lognormal(0.0, 0.05, size=world.batch_size)
        samples = one_s * jitter * np.where(self.draws.random(world.batch_size) < chance, factor, 1.0)
        is_slow = self.num_workers > 1 and worker == self.num_workers - 1
        samples = samples * (world.slow_worker if is_slow else 1.0)
        return float(samples.sum()), float(samples.max())

    def timed(self, window_s: float, *, accounts: bool, num_epochs: int | None, max_batches: int | None) -> Timed:
        """Simulates until the window is full, or all epochs are over."""
        world, works = self.world, self.kind in {"L", "L0", "I"}
        handover_s = self.stage_s("handover")[0] * world.batch_size
        asked, got, epochs = list[float](), list[float](), list[int]()
        made, starts = list[BatchMade](), list[EpochStart]()
        now, epoch, place = 0.0, 0, 0
        skip = max(3, self.in_flight + 2 * self.num_workers)
        free = [0.0] * max(1, self.num_workers)
        ready: list[tuple[float, float, float, int]] = []
        per_epoch = min(world.num_batches, max_batches or world.num_batches)
        is_first = True
        while True:
            if works and place == 0:
                make_s = 0.0
                if self.num_workers and (is_first or not world.is_persistent):
                    make_s = world.worker_start_s * self.slowness
                free, ready = [now + make_s] * len(free), []
                begun = now
                now += make_s
                starts.append(EpochStart(epoch=epoch, make_s=make_s, first_batch_s=0.0))
            asked_s = now
            if works:
                now = self._take(place, now, free, ready, got[-place:] if place else [], begun)
                began, ended, slowest, worker = ready[place]
                now += handover_s
                if place == 0:
                    starts[-1] = dataclasses.replace(starts[-1], first_batch_s=now - asked_s)
                if self.num_workers and accounts:
                    at = len(got)
                    made.append(
                        BatchMade(
                            batch=at,
                            worker=worker,
                            began_s=began,
                            fetched_s=ended,
                            made_s=ended,
                            slowest_sample_s=slowest,
                        )
                    )
            asked.append(asked_s)
            got.append(now)
            epochs.append(epoch)
            now += self._consumer_s(len(got) - 1)
            place += 1
            is_first = False
            if place == per_epoch:
                place, epoch = 0, epoch + 1
                if num_epochs is not None and epoch == num_epochs:
                    break
            if num_epochs is None and len(got) > skip + 8 and now - got[skip - 1] > window_s:
                break
        steps = Steps(
            asked_s=tuple(asked),
            got_s=tuple(got),
            end_s=now,
            epochs=tuple(epochs),
            num_samples=(world.batch_size,) * len(got),
        )
        return self._record(steps, starts, made, skip, accounts=accounts)

    def _take(
        self,
        place: int,
        now: float,
        free: list[float],
        ready: list[tuple[float, float, float, int]],
        taken: Sequence[float],
        begun: float,
    ) -> float:
        """When the batch is there; makes what may be made until then."""
        if not self.num_workers:
            seconds, slowest = self.batch_s(0)
            ready.append((now, now + seconds, slowest, 0))
            return now + seconds
        while len(ready) <= place:
            at = len(ready)
            worker = at % self.num_workers
            allowed = begun if at < self.in_flight else taken[at - self.in_flight]
            began = max(free[worker], allowed)
            seconds, slowest = self.batch_s(worker)
            free[worker] = began + seconds
            ready.append((began, began + seconds, slowest, worker))
        return max(now, ready[place][1])

    def _consumer_s(self, at: int) -> float:
        """Seconds of the step."""
        if self.kind in {"L", "L0"}:
            return 5e-4  # taking and touching a batch costs something, too
        step_s = self.world.step_s * self.world.burst[at % len(self.world.burst)] * self.step_slowness
        if self.kind in {"I", "Ct"}:
            step_s += self.world.transfer_s
        works_beside = self.kind in {"N", "I"} and self.num_workers
        return step_s * (1 + self.world.interference * bool(works_beside)) * float(self.draws.lognormal(0.0, 0.01))

    def _record(
        self,
        steps: Steps,
        starts: Sequence[EpochStart],
        made: Sequence[BatchMade],
        skip: int,
        *,
        accounts: bool,
    ) -> Timed:
        world, num = self.world, len(steps.got_s)
        ends = (*steps.asked_s[1:], steps.end_s)
        first = min(skip, num - 1)
        is_start = [at == 0 or steps.epochs[at] != steps.epochs[at - 1] for at in range(num)]
        inside = [at for at in range(first, num) if not is_start[at]]
        seconds = sum(ends[at] - steps.asked_s[at] for at in inside)
        seconds -= sum(start.make_s for start in starts if start.epoch > steps.epochs[first])
        num_samples = num * world.batch_size
        cpu_s = sum(self.stage_s(stage)[1] for stage in IN_WORKERS) * num_samples if self.kind != "C" else 0.0
        step_s = sum(steps.consumer_s) if self.kind in {"C", "Ct", "N", "I"} else 0.0
        return Timed(
            kind=self.kind,
            setting=AS_IT_IS if self.num_workers == world.num_workers else Setting(num_workers=self.num_workers),
            without=self.without,
            num_workers=self.num_workers,
            in_flight=self.in_flight,
            began_s=0.0,
            starts=tuple(starts),
            steps=steps,
            window=Window(
                first=first,
                last=num,
                seconds=max(seconds, 1e-6),
                num_samples=len(inside) * world.batch_size,
            ),
            amounts=Amounts(num_samples=num_samples, num_bytes=num_samples * world.sample_bytes),
            consumer_cpu_s=step_s + (0.0 if self.num_workers else cpu_s),
            workers_cpu_s=cpu_s if self.num_workers else 0.0,
            batches_made=tuple(made),
            uses=self._uses(num_samples) if accounts else (),
        )

    def _uses(self, num_samples: int) -> tuple[StageUse, ...]:
        used = []
        stages: tuple[Stage, ...] = (*IN_WORKERS, "handover")
        for stage in stages:
            wall_s, cpu_s = self.stage_s(stage)
            if wall_s:
                used.append(
                    StageUse(
                        stage=stage,
                        wall_s=wall_s * num_samples,
                        cpu_s=cpu_s * num_samples,
                        num_samples=num_samples,
                        num_servers=1 if stage == "handover" else max(1, self.num_workers),
                    )
                )
        return tuple(used)
