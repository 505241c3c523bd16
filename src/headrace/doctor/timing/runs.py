"""One timed run: the experiment."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from headrace.doctor.lab.bench import Bench
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.amounts import Tally
from headrace.doctor.timing.consumer import Consumer, Step, Touch
from headrace.doctor.timing.counting import SampleCounter
from headrace.doctor.timing.crew import Crew, crew_of
from headrace.doctor.timing.devices import device_in_use, has_device, is_on_device, on_device, synchronise
from headrace.doctor.timing.floor import with_tiny_samples
from headrace.doctor.timing.identities import Identities
from headrace.doctor.timing.kept import Kept, first_batch
from headrace.doctor.timing.loops import Loop
from headrace.doctor.timing.marks import Marks
from headrace.doctor.timing.passing import Passing
from headrace.doctor.timing.realise import realise
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.tape import Goal, Tape
from headrace.doctor.timing.timed import Amounts, BatchMade, Kind, Stage, StageUse, Timed
from headrace.doctor.timing.usage import Usage
from headrace.doctor.timing.windows import find_window

__all__ = ["TimedRun"]

WARMING_STEPS = 3
"""First steps of a training step that do not count: they may choose algorithms, compile, and grow pools of memory."""
NO_CREW = Crew(num_workers=0, in_flight=0, first_steps=WARMING_STEPS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimedRun:
    """The experiment; yields one `Timed`.

    What this loader or machine cannot do is told in it: no window, no steps, and the reason in `why`. What the loader
    or the training step raises is raised.
    """

    name: ClassVar[str] = "timed run"
    starts_processes: ClassVar[bool] = True

    kind: Kind
    setting: Setting = AS_IT_IS
    consumer: Consumer = dataclasses.field(default_factory=Touch)
    """Of C, Ct, N and I; L and L0 touch each batch and drop it."""
    without: tuple[Stage, ...] = ()
    """Stages that are knocked out."""
    accounts: bool = False
    """Accounts for what each stage takes, in the workers; costs some time there."""
    window_s: float = 2.0
    """Seconds of the steady part that are wanted."""
    most_s: float = 20.0
    """Seconds for all steps, from the first request on; making the training step and the batch that is kept is apart."""
    num_epochs: int | None = None
    """Exactly so many; None: as many as the window needs."""
    max_batches: int | None = None
    """Per epoch; None: all."""
    seed: int = 0
    """The global generators are seeded with it and the epoch before each epoch."""
    wants_ids: bool = False
    folder: str = ""
    """Where accounts are written."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Timed]:
        """Runs it."""
        run = _Run(self, subject, bench)
        try:
            yield run.timed()
        except CannotExamine as error:
            yield _not_run(self, error.what)
        finally:
            run.close()


class _Run:
    """One run under way."""

    def __init__(self, wish: TimedRun, subject: Subject, bench: Bench) -> None:
        self.wish, self.subject, self.bench = wish, subject, bench
        self.marks = Marks(bench)
        self.passing: Passing | None = None
        self.account: Any = None
        self.names: Identities | None = None
        self.why: list[str] = []
        self.device: Any = None
        self.begun = self.settled = Usage.now()
        self.num_settled = 0
        self.tape, self.tally = Tape(), Tally()

    def close(self) -> None:
        """Ends workers, whatever happened."""
        self.marks.take_off()
        if self.passing is not None:
            self.passing.close()

    def timed(self) -> Timed:
        """Makes what is needed, runs the loop, and says what was seen."""
        kind = self.wish.kind
        loader, crew = self._loader() if kind in {"L", "L0", "N", "I"} else (None, NO_CREW)
        if kind == "N" and crew.alone:
            raise CannotExamine(crew.alone)
        step = self._step()
        self.bench.reseed(self.wish.seed, "run")
        kept, num_samples = self._kept(step) if kind in {"C", "Ct", "N"} else (Kept(None), 0)
        if kind not in {"L", "L0"}:
            crew = dataclasses.replace(crew, first_steps=WARMING_STEPS)
        before = None if self.names is None else self.names.begin_epoch
        if loader is not None:
            self.passing = Passing(loader, self.bench, self.wish.seed, before)
        self.begun = self.settled = Usage.now()
        began_s = time.monotonic()
        loop = self._loop(crew, began_s)
        if self.passing is None:
            loop.over_kept(step, kept, num_samples)
        elif kind == "N":
            loop.beside_loader(self.passing, step, kept, num_samples)
        else:
            loop.over_loader(self.passing, step)
        if device_in_use() is not None:
            synchronise()
            self.tape.end_s = time.monotonic()
        return self._said(crew, began_s, Usage.now())

    def _loader(self) -> tuple[Any, Crew]:
        wish, subject = self.wish, self.subject
        loader = realise(subject, wish.setting)
        if wish.kind == "L0":
            loader = with_tiny_samples(subject, loader)
        if wish.without:
            from headrace.doctor.timing.knock_out import without_stages

            loader = without_stages(subject, loader, wish.without, self.bench)
        if wish.accounts:
            from headrace.doctor.timing.accounting import Account

            self.account = Account(wish.folder)
            loader = self.account.wrap(subject, loader)
        if wish.wants_ids and wish.kind != "N":  # there the loader's batches are not those of the steps
            self.names = Identities(subject, loader)
            loader = self.names.loader
        return loader, crew_of(subject, loader)

    def _step(self) -> Step:
        if self.wish.kind in {"L", "L0"}:
            return Touch().start()
        self.bench.reseed(self.wish.seed, "training step")
        return self.wish.consumer.start()

    def _kept(self, step: Step) -> tuple[Kept, int]:
        """The batch that is kept, where the step wants it, and its number of samples."""
        is_copied = self.wish.kind == "Ct"
        if is_copied and not has_device():
            raise CannotExamine("there is no CUDA device, so nothing is copied to one")
        self.marks.put("the first batch")
        batch = first_batch(self.subject, self.wish.setting)
        self.marks.take_off()
        if is_copied and is_on_device(batch):
            raise CannotExamine("the loader delivers batches on the device, so the training step copies nothing")
        kept, num_samples = Kept(batch), self._counter()(batch)
        kept.try_out(step)  # only now it is known whether the step puts anything on a device
        self.device = device_in_use()
        if is_copied and self.device is None:
            raise CannotExamine("the training step puts nothing on the CUDA device, so nothing is copied to it")
        if self.device is not None and not is_copied:
            kept = self._resident(kept, step)
        if kept.is_changed:
            self.why.append("the training step changes its batch in place: making a copy for each step is in this time")
        return kept, num_samples

    def _resident(self, kept: Kept, step: Step) -> Kept:
        """The batch on the device, if the step takes it from there."""
        resident = Kept(on_device(kept.take(), self.device))
        try:
            resident.try_out(step)
        except Exception as error:
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            self.why.append(
                f"the training step takes batches of the host only ({said}): their copy to the device is in it"
            )
            return kept
        return resident

    def _counter(self) -> SampleCounter:
        subject = self.subject
        return SampleCounter(is_batched=subject.is_batched or subject.takes_lists, batch_size=subject.batch_size)

    def _loop(self, crew: Crew, began_s: float) -> Loop:
        wish = self.wish
        goal = Goal(
            crew,
            began_s=began_s,
            window_s=wish.window_s,
            most_s=wish.most_s,
            num_epochs=None if self.passing is None else wish.num_epochs,
        )
        note: Callable[[], None] | None = None if self.names is None else self.names.note
        return Loop(
            tape=self.tape,
            goal=goal,
            marks=self.marks,
            count=self._counter(),
            tally=self.tally,
            settle=self._settle,
            max_batches=math.inf if wish.max_batches is None else wish.max_batches,
            note=note,
        )

    def _settle(self) -> None:
        """The start is over: what is used from now on is the steps'."""
        synchronise()
        self.settled, self.num_settled = Usage.now(), sum(self.tape.num_samples)

    def _said(self, crew: Crew, began_s: float, ended: Usage) -> Timed:
        wish, steps = self.wish, self.tape.steps
        window, why = find_window(steps, self.tape.epochs, crew)
        num_samples = sum(steps.num_samples)
        uses, made = self._accounted()
        later = num_samples - self.num_settled
        since, share = (self.settled, num_samples / later) if later and self.num_settled else (self.begun, 1.0)
        return Timed(
            kind=wish.kind,
            setting=wish.setting,
            without=wish.without,
            num_workers=crew.num_workers,
            in_flight=crew.in_flight,
            began_s=began_s,
            starts=tuple(self.tape.starts),
            steps=steps,
            window=window,
            why="; ".join(filter(None, [*self.why, why])),
            amounts=self.tally.total(num_samples),
            consumer_cpu_s=share * (ended.own_cpu_s - since.own_cpu_s),
            workers_cpu_s=share * max(0.0, ended.below_cpu_s - since.below_cpu_s),
            read_bytes=_difference(ended.read_bytes, self.begun.read_bytes),
            logical_bytes=_difference(ended.logical_bytes, self.begun.logical_bytes),
            batch_ids=None if self.names is None else self.names.names(),
            batches_made=made,
            uses=uses,
            device=None if self.device is None else str(self.device),
        )

    def _accounted(self) -> tuple[tuple[StageUse, ...], tuple[BatchMade, ...]]:
        if self.account is None:
            return (), ()
        try:
            uses, made = self.account.read()
        except CannotExamine as error:  # what was timed is true all the same
            self.why.append(error.what)
            return (), ()
        return tuple(uses), tuple(made)


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else max(0, after - before)


def _not_run(wish: TimedRun, why: str) -> Timed:
    return Timed(
        kind=wish.kind,
        setting=wish.setting,
        without=wish.without,
        num_workers=0,
        in_flight=0,
        began_s=time.monotonic(),
        starts=(),
        steps=Tape().steps,
        window=None,
        why=why,
        amounts=Amounts(num_samples=0, num_bytes=0),
        consumer_cpu_s=0.0,
        workers_cpu_s=0.0,
    )
