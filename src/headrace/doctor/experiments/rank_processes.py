"""Runs the ranks as processes of one gloo group, if that is asked for: what each of them really draws."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.ranks import RankFailure, RankFailures, Ranks
from headrace.doctor.experiments.ranks import PretendRanks, World, plan_for, same_samples
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.inside import end_with
from headrace.doctor.lab.leaving import leave
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.probes.order_draws import Drawn
from headrace.doctor.probes.sources import read_source
from headrace.doctor.round import Round, told
from headrace.doctor.stacks import innermost_at
from headrace.doctor.subject import Subject
from headrace.doctor.subject.worlds import joined

__all__ = ["STEP", "RunRanks"]

END_S = 2.0
"""Seconds that ranks have to leave their group together."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunRanks:
    """The experiment; yields RankFailures, and Ranks if there are none. The child is rank 0, and starts the others."""

    name: ClassVar[str] = "ranks in processes"
    starts_processes: ClassVar[bool] = True

    plan: PretendRanks
    most_s: float
    """Seconds for all ranks together; also how long a collective waits for a rank that does not come."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Evidence]:
        """Makes TARGET on every rank, compares what they drew."""
        del subject  # made for no rank
        size = self.plan.world_size
        with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder:
            store = os.path.join(folder, "group")  # noqa: PTH118 - a text is needed
            others = [_Other(self, rank, store) for rank in range(1, size)]
            try:
                for one in others:
                    one.wait_until_ready()
                first = self.live(0, store, bench)
                left_s = END_S if isinstance(first, RankFailure) else self.most_s
                answers = [one.hear(left_s) for one in others]
            finally:
                for one in others:
                    one.end()
        failures = tuple(one for one in (first, *answers) if isinstance(one, RankFailure))
        yield RankFailures(world_size=size, failures=failures)
        if isinstance(first, RankFailure) or failures:
            return
        shares = [one for one in answers if isinstance(one, Share)]
        universe = first.universe.union(*(one.universe for one in shares))
        drawn = [first.drawn, *(one.drawn for one in shares)]
        world = dataclasses.replace(first, universe=universe)
        is_dealt = first.place is not None and first.place.world_size == size
        yield self.plan.describe([world], drawn, "processes", is_dealt or not same_samples(drawn))

    def live(self, rank: int, store: str, bench: Bench) -> World | RankFailure:
        """One rank."""
        try:
            with joined(rank, self.plan.world_size, store, most_s=self.most_s):
                return self.plan.make(rank, bench)
        except Exception as error:
            cause = error.__cause__ or error  # TARGET's own exception, where it could not be made
            text = str(cause).strip().partition("\n")[0]
            is_waiting = any(sign in text for sign in _LEFT_ALONE)
            if is_waiting:  # the transport's own source line, and its advice
                text = re.sub(r"^\[[^\]]*\]\s*", "", text).partition(". ")[0]
            return RankFailure(
                rank=rank,
                error=f"{type(cause).__name__}: {text}",
                at=innermost_at(cause),
                is_waiting=is_waiting,
            )


_LEFT_ALONE = ("gloo/transport", "Timed out waiting", "Wait timeout", "Connection closed by peer")
"""What gloo says of a rank that waited in vain."""


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """What another rank tells of itself."""

    drawn: Drawn
    universe: frozenset[Any]


class _Other:
    """A rank in an interpreter of its own, as torchrun would start it."""

    def __init__(self, experiment: RunRanks, rank: int, store: str) -> None:
        self._rank = rank
        self._connection, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._connection.send((experiment, rank, store))

    def wait_until_ready(self) -> None:
        """Waits until it has imported torch, which takes long on a busy machine: the group's timeout begins then."""
        with contextlib.suppress(EOFError, OSError):
            self._connection.recv()

    def hear(self, timeout_s: float) -> Share | RankFailure:
        """What it says."""
        try:
            if self._connection.poll(timeout_s):
                said: Share | RankFailure = self._connection.recv()
                return said
        except (EOFError, OSError):
            return RankFailure(rank=self._rank, error="its process ended", at=None)
        return RankFailure(rank=self._rank, error="it has not come to an end", at=None, is_waiting=True)

    def end(self) -> None:
        """Ends its process, if it has not ended."""
        self._connection.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(arguments: list[str]) -> None:
    """One rank but the first: hears what to do, says what it drew."""
    number, parent = map(int, arguments)
    end_with(parent)
    connection = Connection(number)
    experiment, rank, store = connection.recv()
    importlib.import_module("torch.distributed")
    connection.send("ready")
    # Rank 0 tells the lab what is in hand; this one has a recorder that nobody reads.
    found = experiment.live(rank, store, Bench(FlightRecorder.create()))
    connection.send(found if isinstance(found, RankFailure) else Share(found.drawn, found.universe))
    leave(0)


class _Step:
    place = 322  # after pretending, whose answer it replaces
    gives = (Ranks, RankFailures)
    every_split = False

    def run(self, round_: Round) -> None:
        if not round_.wishes.runs_ranks:
            round_.found.lacks([RankFailures], "ranks are run as processes if that is asked for: --rank-processes")
            return
        if round_.facts.collate is None or not round_.wishes.spec:
            round_.found.lacks([RankFailures], "ranks are made from a TARGET of a file that gives a loader")
            return
        plan = plan_for(round_, read_source(round_.wishes.spec))
        experiment = RunRanks(plan=plan, most_s=max(5.0, min(20.0, round_.left_s / 3)))
        round_.say(f"running {plan.world_size} ranks in processes")
        records, ending = round_.ask(experiment)
        round_.found.note(experiment.name, ending, f"{plan.world_size} processes in one gloo group")
        if any(isinstance(record, RankFailures) for record in records):
            # What was pretended gives way to what was seen, also where that is a failure.
            round_.found.evidence.pop(Ranks, None)
            round_.found.lacks([Ranks], "ranks failed as processes")
        else:
            round_.found.lacks([RankFailures], told(ending) or "the ranks did not answer")
        for record in records:
            round_.found.add(record)


STEP = _Step()

if __name__ == "__main__":
    # Records are pickled under the module's own name, which this one does not have here.
    importlib.import_module("headrace.doctor.experiments.rank_processes").main(sys.argv[1:])
