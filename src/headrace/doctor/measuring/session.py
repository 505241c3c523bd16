"""One measurement under way: which rounds run, one after another.

look at the target, warm or evict its files ─▶ accounted rounds ─▶ plain table ─▶ blocks of the loop
    ─▶ knock-outs, unless the loop is healthy ─▶ memory ─▶ more blocks while it is open and time is left
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import statistics
import time
from typing import Any, NoReturn, cast

from headrace.doctor.measuring.assemble import Found, assemble
from headrace.doctor.measuring.checking import check_workers
from headrace.doctor.measuring.looking import LookAtTarget, TargetFacts
from headrace.doctor.measuring.memory_round import BusyThreads, MemoryRound, memory_use
from headrace.doctor.measuring.model import Measurement, MemoryUse, RoundRun
from headrace.doctor.measuring.options import Options
from headrace.doctor.measuring.plain import Checked
from headrace.doctor.measuring.plan import FIRST_WINDOW_S, KNOCK_SHARE, Pilot, Plan, knock_outs_that_fit, make_plan
from headrace.doctor.measuring.rounds import OVER, RoundRunner
from headrace.doctor.measuring.stages import DATASET
from headrace.doctor.meters.memory import MemorySeries
from headrace.doctor.meters.page_cache import FileRange, warm
from headrace.doctor.meters.preflight import Preflight, look_before
from headrace.doctor.sameness.fields import FindTraits
from headrace.doctor.sameness.passport import Traits
from headrace.doctor.statistics.schedule import schedule
from headrace.doctor.timing.consumer import Touch
from headrace.doctor.timing.runs import TimedRun
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.step_check import CheckStep, raise_refusal
from headrace.doctor.timing.timed import Kind, Stage, Timed
from headrace.errors import ConfigurationError, TargetError
from headrace.machine import usable_cores

__all__ = ["Session"]

WARM_S = 10.0
"""Longest reading of files before the clock starts."""
CHECK_SHARE, CHECK_FROM_S = 0.15, 30.0
"""Part of the budget for comparing the data with those of no workers; below so many seconds it is left out."""


class Session:
    """One measurement under way; a lab for it is open."""

    def __init__(self, target: Any, spec: str, options: Options, runner: RoundRunner, pressure: float | None) -> None:
        self.target, self.spec, self.options, self.runner, self.pressure = target, spec, options, runner, pressure
        self.began_s = time.monotonic()
        self.left_out: list[str] = []
        self.checked: dict[int, Checked] = {}
        self.memory: MemoryUse | None = None
        self.threads: float | None = None
        self.num_blocks = self.num_knocked = 0
        self.facts: TargetFacts
        self.preflight: Preflight
        self.is_random: bool | None = None

    def run(self) -> Measurement:
        """Everything, in order."""
        self._look()
        pilot = self._pilots()
        plan = self._plan(pilot)
        self.left_out += plan.left_out
        self._plain(plan)
        self._blocks(plan, plan.num_blocks)
        self._check()
        found = self._assembled()
        if found.conclusion.verdict == "healthy":
            self.left_out.append("rounds without a stage: the loop waits for nothing that they would explain")
        else:
            self._knock_outs(pilot, plan)
        self._memory(plan)
        found = self._assembled()
        while found.conclusion.verdict == "inconclusive" and self.runner.left_s > 1.2 * plan.block_s:
            self._blocks(plan, 1)
            found = self._assembled()
        if self.options.trace:
            self._write_trace()
        return found

    # What it is.

    def _look(self) -> None:
        self.runner.say(f"loading {self.spec}")
        records, failure = self.runner.experiment(LookAtTarget(seed=self.options.seed))
        facts = next((one for one in records if isinstance(one, TargetFacts)), None)
        if facts is None and failure.startswith(OVER):
            self._give_up_for_time("loading it")
        if facts is None:
            raise TargetError(f"TARGET {self.spec} did not say what it is: {failure}")
        if self.options.workers is not None and facts.fixed_workers:
            raise ConfigurationError(
                f"{self.spec} cannot be measured with {self.options.workers} workers: {facts.fixed_workers}"
            )
        self.facts = facts
        if self.options.consumer is not None:
            raise_refusal(self.runner.experiment(CheckStep(self.options.consumer))[0])
        # In a short run every child counts, and this one decides nothing.
        if not facts.is_iterable and facts.num_samples and self.options.budget_s >= CHECK_FROM_S:
            rows = (0, facts.num_samples // 2, facts.num_samples - 1)
            records, _ = self.runner.experiment(FindTraits(rows=rows, most_s=0.5))
            traits = next((one for one in records if isinstance(one, Traits)), None)
            self.is_random = bool(traits.random) if traits is not None and traits.num_samples else None
        planned = [FileRange(path) for path in facts.paths]
        if planned and not self.options.is_cold:
            self._warm(planned)
        self.runner.begin(planned, is_cold=self.options.is_cold)
        self.preflight = look_before(planned, pressure=self.pressure)

    def _warm(self, planned: list[FileRange]) -> None:
        """Reads the files once, as far as time allows: the label says how far it went."""
        self.runner.say(f"reading {len(planned):,} files once, so that all rounds find them in memory")
        deadline = time.monotonic() + min(WARM_S, 0.15 * self.options.budget_s)
        for first in range(0, len(planned), 64):
            warm(planned[first : first + 64])
            if time.monotonic() > deadline:
                break

    @property
    def num_workers(self) -> int:
        """Of the present setting."""
        return self.facts.num_workers if self.options.workers is None else self.options.workers

    @property
    def setting(self) -> Setting:
        """The present one, as far as it is not the user's own."""
        return AS_IT_IS if self.options.workers is None else Setting(num_workers=self.options.workers)

    def _wish(self, kind: Kind, window_s: float, **more: Any) -> TimedRun:
        return TimedRun(
            **{
                "kind": kind,
                "setting": self.setting,
                "consumer": self.options.consumer or Touch(),
                "window_s": window_s,
                "most_s": max(3.0, 4 * window_s),
                "seed": self.options.seed,
                **more,
            }
        )

    # The rounds.

    def _pilots(self) -> Pilot:
        """Accounted rounds of the loader alone and of the loop: they tell what everything takes, and whether it runs."""
        kinds: tuple[Kind, ...] = ("L", "I") if self.options.consumer is not None else ("L",)
        batch_s, extra_s = dict[Kind, float](), list[float]()
        for kind in kinds:
            most_s = min(20.0, self.options.budget_s / (4 if self.options.budget_s >= CHECK_FROM_S else 6))
            started = time.monotonic()
            run = self.runner.run(f"{kind} accounted", self._wish(kind, FIRST_WINDOW_S, accounts=True, most_s=most_s))
            if run.timed is None:  # else it ran, and had too little time, of which another try has less
                accounted_failure = run.failure
                started = time.monotonic()
                run = self.runner.run(f"{kind} pilot", self._wish(kind, FIRST_WINDOW_S, most_s=most_s))
                if run.timed is not None and run.timed.window is not None:
                    self.left_out.append(f"stages of {kind}: {accounted_failure}")
            window = None if run.timed is None else run.timed.window
            if window is None:
                self._miss(run, kind)
                if run.timed is not None:
                    steps = run.timed.steps
                    batch_s[kind] = (steps.end_s - steps.asked_s[0]) / len(steps.got_s)
                continue
            batch_s[kind] = window.seconds / max(1, window.num_batches)
            extra_s.append(max(0.1, time.monotonic() - started - window.seconds))
        loader_s = batch_s.get("L", 0.01)
        return Pilot(
            batch_s=batch_s.get("I", loader_s), loader_batch_s=loader_s, extra_s=statistics.fmean(extra_s or [1.0])
        )

    def _miss(self, run: RoundRun, kind: Kind) -> None:
        """A first round had no steady part: goes on with what there is if only time was short.

        Raises:
            TargetError: the code failed; or of the loader alone not even one batch was there in time.
        """
        is_late = run.failure.startswith(OVER)
        if is_late and kind == "L":
            self._give_up_for_time("its first batches")
        if not is_late and run.timed is None:
            self._give_up(run, kind)
        what = "the loader alone" if kind == "L" else "the loop"
        self.left_out.append(f"{what}: {run.failure}; about --budget {self._better_budget_s():.0f}s holds its rounds")

    def _better_budget_s(self) -> float:
        """A budget that would do, by what was used until now for the first rounds alone."""
        used_s = time.monotonic() - self.began_s
        return math.ceil(max(2 * self.options.budget_s, 5 * used_s) / 10) * 10

    def _give_up_for_time(self, what: str) -> NoReturn:
        """The budget is used up before anything was seen.

        Raises:
            TargetError: always.
        """
        raise TargetError(
            f"{self.spec} cannot be measured within --budget {self.options.budget_s:g}s: {what} took longer",
            do=f"--budget {self._better_budget_s():.0f}s",
        )

    def _give_up(self, run: RoundRun, kind: Kind) -> None:
        """Nothing can be measured.

        Raises:
            TargetError: always.
        """
        why = f"{run.failure.removeprefix('TargetError: ') or 'no steady part'} (round {run.id})"
        if kind == "I" and self.options.consumer is not None:
            raise TargetError(
                f"{self.spec} cannot be measured under {self.options.consumer.name}: {why}",
                do=f"call {self.options.consumer.name} with one batch of {self.spec}: the loader alone did run",
            )
        raise TargetError(
            f"{self.spec} cannot be measured: {why}",
            do=f"headrace diagnose {self.target}" if isinstance(self.target, str) else None,
        )

    def _plan(self, pilot: Pilot) -> Plan:
        numbers = [0, self.num_workers or 2]
        if self.num_workers > usable_cores():
            numbers.append(max(1, usable_cores()))
        if self.facts.fixed_workers:
            numbers = [self.num_workers]
            self.left_out.append(f"other numbers of workers: {self.facts.fixed_workers}")
        return make_plan(
            pilot,
            left_s=self.runner.left_s,
            num_workers=self.num_workers,
            plain_workers=numbers,
            has_step=self.options.consumer is not None,
            has_device=any(run.timed is not None and run.timed.device is not None for run in self.runner.runs),
            num_batches=self.facts.num_batches,
        )

    def _plain(self, plan: Plan) -> None:
        deadline = time.monotonic() + 0.35 * self.runner.left_s
        for number in range(plan.num_plain):
            for place, workers in enumerate(plan.plain_workers):
                # One round without workers and one with those it has are run whatever they take.
                if (number or place > 1) and time.monotonic() > deadline:
                    if not number:
                        self.left_out.append(f"plain table, {workers} workers: a larger --budget holds its rounds")
                    continue
                setting = dataclasses.replace(self.setting, num_workers=workers)
                wish = self._wish(
                    "L",
                    FIRST_WINDOW_S,
                    setting=self.setting if self.facts.fixed_workers else setting,
                    num_epochs=2,
                    max_batches=plan.plain_batches,
                    most_s=max(2.0, self.runner.left_s / 4),
                )
                run = self.runner.run(f"plain workers={workers}", wish, told_as=f"plain table, {workers} workers")
                if run.timed is None and not number:
                    why = run.failure or "it delivered nothing"
                    self.left_out.append(f"plain table, {workers} workers, a round: {why}")

    def _blocks(self, plan: Plan, num_blocks: int) -> None:
        """Mirrored blocks of the loop and its arms, or of the loader alone."""
        present = "I" if self.options.consumer is not None else "L"
        slots = schedule(present, plan.arms, num_blocks=num_blocks, seed=self.options.seed + self.num_blocks)
        ends_s = self.runner.left_s * (1 - KNOCK_SHARE)
        started = time.monotonic()
        for slot in slots:
            if time.monotonic() - started > ends_s and slot.block > 0:
                break
            self.runner.run(
                slot.setting,
                self._wish(cast("Kind", slot.setting), plan.window_s),
                block=self.num_blocks + slot.block,
                is_control=slot.is_control,
                told_as=f"block {slot.block + 1} of {num_blocks}, {slot.setting}",
            )
        self.num_blocks += num_blocks

    def _knock_outs(self, pilot: Pilot, plan: Plan) -> None:
        account = next((run.timed for run in self.runner.runs if run.arm == "L accounted" and run.timed), None)
        round_s = pilot.extra_s + plan.window_s
        left_s = min(
            self.runner.left_s - 2 * round_s, max(KNOCK_SHARE * self.options.budget_s, 0.6 * self.runner.left_s)
        )
        uses = account.uses if account is not None else ()
        stages, num_blocks = knock_outs_that_fit(uses, num_workers=self.num_workers, left_s=left_s, round_s=round_s)
        failed = self._without(stages, num_blocks, plan, round_s)
        tried = set(stages) - failed
        if stages and failed and not tried & DATASET and "sample" not in failed:
            # What cannot be left out by itself can be with all that makes a sample.
            self._without(("sample",), max(1, num_blocks - 1), plan, round_s)
        if not stages:
            self.left_out.append(f"rounds without a stage: about --budget {2 * self.options.budget_s:.0f}s holds them")

    def _without(self, stages: tuple[Stage, ...], num_blocks: int, plan: Plan, round_s: float) -> set[Stage]:
        """Mirrored blocks of the loader alone, and without each stage; returns the stages that could not be left out."""
        named: dict[str, Stage] = {f"L without {stage}": stage for stage in stages}
        failed = set[Stage]()
        self.num_knocked += 1
        for slot in schedule("L", list(named), num_blocks=num_blocks, seed=self.options.seed):
            stage = named.get(slot.setting)
            if slot.is_control or stage in failed:
                continue
            if self.runner.left_s < 1.5 * round_s:
                break
            run = self.runner.run(
                slot.setting,
                self._wish("L", plan.window_s, without=() if stage is None else (stage,)),
                block=1000 * self.num_knocked + slot.block,
                told_as=f"{slot.setting}, block {slot.block + 1} of {num_blocks}",
            )
            if stage is not None and (run.timed is None or run.timed.window is None):
                failed.add(stage)
                self.left_out.append(f"rounds without {stage}: {run.failure}")
        return failed

    def _memory(self, plan: Plan) -> None:
        """One round under the sampler."""
        if self.runner.left_s < 2 * plan.window_s + 1:
            self.left_out.append(f"memory: about --budget {1.2 * self.options.budget_s:.0f}s holds its round")
            return
        kind: Kind = "I" if self.options.consumer is not None else "L"
        self.runner.say("memory")
        window_s = min(4.0, max(plan.window_s, 0.3 * self.runner.left_s))
        wish = self._wish(kind, window_s, most_s=max(1.0, min(3 * window_s, self.runner.left_s - 0.5)))
        records, failure = self.runner.experiment(MemoryRound(timed=wish))
        timed = next((one for one in records if isinstance(one, Timed)), None)
        series = next((one for one in records if isinstance(one, MemorySeries)), None)
        threads = next((one for one in records if isinstance(one, BusyThreads)), None)
        if timed is None or series is None:
            self.left_out.append(f"memory: {failure or 'its round did not end'}")
            return
        # Its speed does not count: looking takes locks.
        self.runner.keep("memory", timed)
        self.memory = memory_use(timed, series)
        self.threads = threads.per_worker if threads is not None else None

    def _check(self) -> None:
        """Compares the data of the present number of workers with those of none."""
        number = self.num_workers or 2
        if self.facts.fixed_workers:
            return
        if self.options.budget_s < CHECK_FROM_S or self.runner.left_s < CHECK_SHARE * self.options.budget_s:
            told = (
                f"not compared: about --budget {max(CHECK_FROM_S, 1.5 * self.options.budget_s):.0f}s leaves time for it"
            )
            self.checked[number] = Checked(text=told, is_same=None)
            return
        self.runner.say("comparing the data with those without workers")
        self.runner.lab.close()
        seconds = min(CHECK_SHARE * self.options.budget_s, self.runner.left_s - 1)
        self.checked[number] = check_workers(
            self.target, number, seconds=seconds, facts=self.facts, seed=self.options.seed
        )

    # What it comes to.

    def _assembled(self) -> Measurement:
        options, facts = self.options, self.facts
        found = Found(
            spec=self.spec,
            command=options.command,
            created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            kind=facts.kind,
            num_samples=facts.num_samples,
            batch_size=facts.batch_size,
            num_workers=self.num_workers,
            num_batches=facts.num_batches,
            is_persistent=facts.is_persistent,
            consumer=None if options.consumer is None else options.consumer.name,
            is_emulated=options.consumer is not None and options.consumer.is_emulated,
            seed=options.seed,
            budget_s=options.budget_s,
            used_s=time.monotonic() - self.began_s,
            preflight=self.preflight,
            cache=self.runner.cache_label(),
            is_local=self._is_local(),
            decodes=facts.decodes,
            is_random=self.is_random,
            checked=self.checked,
            memory=self.memory,
            busy_threads=self.threads,
            left_out=tuple(dict.fromkeys(self.left_out)),
        )
        return assemble(found, self.runner.runs)

    def _is_local(self) -> bool | None:
        """False if a file lies on a network's file system."""
        systems = self.preflight.cache.file_systems
        if not systems:
            return None
        return not any(
            name.startswith(("nfs", "cifs", "smb", "fuse", "lustre", "ceph", "9p", "gluster")) for name in systems
        )

    def _write_trace(self) -> None:
        timed = next(
            (
                run.timed
                for arm in ("I accounted", "L accounted")
                for run in self.runner.runs
                if run.arm == arm and run.timed is not None
            ),
            None,
        )
        if timed is None or self.options.trace is None:
            self.left_out.append("the trace: no accounted round ran")
            return
        from headrace.doctor.timing.trace import write_trace

        write_trace(timed, self.options.trace)
