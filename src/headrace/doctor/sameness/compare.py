"""Compares two targets: walks both in children, asks what is random, sets generators back where that decides.

fields read twice ──▶ both walked as they are ──▶ rare randomness? read again ──▶ frozen walks ──▶ pure comparison
                                                                                ──▶ the first difference looked at
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from headrace.doctor.evidence.equivalence import LEVELS, Equivalence, Level
from headrace.doctor.lab.launch import launchers_for
from headrace.doctor.lab.outside import Budget, Experiment, Lab
from headrace.doctor.lab.starting import Launcher
from headrace.doctor.probes.reads import choose_indices
from headrace.doctor.round import told
from headrace.doctor.sameness.comparing import compare_passports, suspects
from headrace.doctor.sameness.delivering import Ended, Followed, Prepare, Refused, Shown, WalkDelivery
from headrace.doctor.sameness.draws import in_hands
from headrace.doctor.sameness.fields import FindTraits, traits_of_walks
from headrace.doctor.sameness.looking import describe_arrays
from headrace.doctor.sameness.passport import Batch, Epoch, Introduction, Passport, Sample, Stopped, Traits
from headrace.doctor.subject.target import check
from headrace.doctor.walks.observer import Telling
from headrace.errors import ConfigurationError, TargetError

__all__ = ["Options", "compare"]

NUM_READ = 16
"""Rows that are read several times: what is random in one of five samples shows in them."""
ENDED_BY_US = "ended by headrace"
"""How the lab begins to say that it ended a child that took too much memory."""
NUM_SUSPECTS, NUM_SEEDS = 12, 24
"""Samples that differ are read under so many seeds: an augmentation of one in a hundred shows."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to compare.

    Raises:
        ConfigurationError: options that cannot be meant.
    """

    levels: Sequence[Level] = ("E0", "E1", "E2", "E3", "E4")
    """What to compare. E5 is left out: another memory layout or pinning is no other data."""
    seed: int = 0
    """The global generators of both are seeded with it, and the epoch, before each epoch."""
    num_epochs: int = 2
    """Two: random draws must not repeat from one to the next."""
    max_samples: int | None = None
    """Samples of each epoch; None: all."""
    one_in: int = 1
    """Fields are compared of one in so many samples, the same ones on both sides; ids and order of all."""
    budget_s: float = 90.0
    """Seconds for everything together."""
    per_batch_s: float = 30.0
    """Seconds after which a batch is stuck."""

    def __post_init__(self) -> None:
        unknown = [level for level in self.levels if level not in LEVELS]
        if unknown or not self.levels:
            raise ConfigurationError(f"levels {', '.join(unknown) or 'none'}: there are {', '.join(LEVELS)}")
        if self.num_epochs < 1 or self.one_in < 1 or (self.max_samples is not None and self.max_samples < 1):
            raise ConfigurationError(
                f"num_epochs={self.num_epochs}, one_in={self.one_in}, max_samples={self.max_samples}: at least 1"
            )
        if self.budget_s <= 0 or self.per_batch_s <= 0:
            raise ConfigurationError(f"budget_s={self.budget_s:g}, per_batch_s={self.per_batch_s:g}: seconds above 0")


def compare(
    target_a: Any,
    target_b: Any,
    options: Options | None = None,
    *,
    workers: tuple[int | None, int | None] = (None, None),
    prepare: tuple[Prepare | None, Prepare | None] = (None, None),
    progress: Callable[[str], None] | None = None,
) -> Equivalence:
    """Returns whether two loaders deliver the same data.

    Args:
        target_a: TARGET as `train.py:make_loader`, or a loader or data set itself, which is walked in forks of this process.
        target_b: The other one; the same TARGET to compare two numbers of workers.
        options: How to compare.
        workers: Numbers of workers to walk them with. Default: as each is set.
        prepare: What turns each into the one to walk, in the child, as another setting of the same loader; functions that
            pickle. Samples are still read from the target itself to see what is random.
        progress: Told, in a few words, what is being done.

    Raises:
        TargetError: a TARGET cannot be loaded, or is nothing that can be walked.
        ConfigurationError: a loader has no number of workers that could be changed.

    Nothing that was started is left afterwards.
    """
    options = options or Options()
    targets = (target_a, target_b)
    for target in targets:
        check(target, do="headrace compare a.py:make b.py:make")
    budget = Budget(options.budget_s)
    say = progress or (lambda _: None)
    with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder:
        launchers = launchers_for(targets, seed=options.seed)
        sides = [
            _Side(target, number, ready, options, budget, os.path.join(folder, name), name, launcher, say)  # noqa: PTH118
            for target, number, ready, name, launcher in zip(
                targets, workers, prepare, ("A", "B"), launchers, strict=True
            )
        ]
        try:
            return _Pair(sides[0], sides[1], options).run()
        finally:
            for side in reversed(sides):  # the first may own what starts the other's children
                side.close()


class _Pair:
    """The plan of one comparison."""

    def __init__(self, a: _Side, b: _Side, options: Options) -> None:
        self.a, self.b, self.options = a, b, options

    def run(self) -> Equivalence:
        sides = (self.a, self.b)
        for place, side in enumerate(sides):
            # Each walk leaves as much to those that follow: the other side, and both once more.
            side.walk(share=(0.25, 0.35)[place])
        if {"E2", "E3", "E4", "E5"} & set(self.options.levels) or not all(side.has_ids for side in sides):
            self.a.find_traits()
            if self.b.target is self.a.target:  # the number of workers changes nothing of what a sample is made of
                self.b.take_traits(self.a)
            else:
                self.b.find_traits()
            self._doubt()
            if "E4" in self.options.levels and self._needs_frozen():
                for place, side in enumerate(sides):
                    side.freeze(share=(0.35, 0.6)[place])
        return self._look(self._compare())

    def _compare(self) -> Equivalence:
        return compare_passports(
            self.a.passport,
            self.b.passport,
            specs=(self.a.spec, self.b.spec),
            levels=self.options.levels,
            one_in=self.options.one_in,
            max_samples=self.options.max_samples,
        )

    def _doubt(self) -> None:
        """Reads samples that differ again and again: a transform that is applied seldom looks like a fault."""
        found = suspects(self.a.passport, self.b.passport, NUM_SUSPECTS)
        rows = tuple(sample.row for sample in found if isinstance(sample.row, int))
        if rows and all(side.passport.introduction.has_rows for side in (self.a, self.b)):
            self.a.read_again(rows)
            # What is known to be random on one side is not doubted on the other.
            if suspects(self.a.passport, self.b.passport, 1) and self.b.target is not self.a.target:
                self.b.read_again(rows)

    def _needs_frozen(self) -> bool:
        passports = (self.a.passport, self.b.passport)
        if not any(one.traits.random for one in passports) or not all(one.introduction.can_freeze for one in passports):
            return False
        if any(one.undivided for one in passports):
            return False
        (answer,) = (one for one in self._compare().levels if one.level == "E4")
        return answer.verdict == "not comparable"

    def _look(self, found: Equivalence) -> Equivalence:
        """Adds to the first difference in a field how large it is."""
        levels = []
        is_looked_at = False
        for one in found.levels:
            first = one.first
            if not is_looked_at and first is not None and first.field and first.position is not None:
                is_looked_at = True
                is_frozen = one.level == "E4"
                if one.level in {"E2", "E3"} or (is_frozen and found.policy == "frozen"):
                    arrays = [side.show(first.epoch or 0, first.sample_id, freezes=is_frozen) for side in self.sides]
                    if arrays[0] is not None and arrays[1] is not None:
                        first = describe_arrays(first, arrays[0], arrays[1])
            levels.append(dataclasses.replace(one, first=first))
        return dataclasses.replace(found, levels=tuple(levels))

    @property
    def sides(self) -> tuple[_Side, _Side]:
        return self.a, self.b


class _Side:
    """One target in its lab."""

    def __init__(
        self,
        target: Any,
        num_workers: int | None,
        prepare: Prepare | None,
        options: Options,
        budget: Budget,
        folder: str,
        name: str,
        launcher: Launcher,
        say: Callable[[str], None],
    ) -> None:
        self.target = target
        self.spec = target if isinstance(target, str) else f"this {type(target).__name__}"
        self._options, self._folder, self._say, self._name = options, folder, say, name
        self._num_workers, self._prepare = num_workers, prepare
        self._num_walks = 0
        self._has_died = False
        """True if the last child ended by itself, as the user's own process would have."""
        self._lab = Lab(self.spec, budget=budget, per_sample_s=options.per_batch_s, launcher=launcher)
        self.passport: Passport

    def close(self) -> None:
        """Ends everything that was started."""
        self._lab.__exit__()

    @property
    def has_ids(self) -> bool:
        """True if samples have names or rows."""
        return all(
            sample.row is not None or sample.name is not None
            for epoch in self.passport.epochs
            for sample in epoch.samples
        )

    def walk(self, *, share: float) -> None:
        """Walks the loader as it is; makes the passport."""
        self._say(f"walking {self._name}: {self.spec}")
        records, reason = self._run(self._experiment(share=share, num_epochs=self._options.num_epochs))
        introduction = next((one for one in records if isinstance(one, Introduction)), None)
        refused = next((one for one in records if isinstance(one, Refused)), None)
        if refused is not None:
            how = "in this setting" if self._num_workers is None else f"with {self._num_workers} workers"
            raise ConfigurationError(f"{self.spec} cannot be walked {how}: {refused.reason}")
        if introduction is None:
            raise TargetError(f"TARGET {self.spec} did not say what it is: {reason}")
        stopped = next((one for one in records if isinstance(one, Stopped)), None)
        if stopped is None and reason:
            stopped = Stopped(epoch=0, reason=reason, is_error=self._has_died)
        followed = [one for one in records if isinstance(one, Followed)]
        self.passport = Passport(
            introduction=introduction,
            epochs=_epochs(records),
            shared_draws=tuple(draw for one in followed for draw in one.shared),
            repeated_draws=tuple(draw for one in followed for draw in one.repeated),
            follows_draws=bool(followed),
            stopped=stopped,
        )

    def find_traits(self) -> None:
        """Asks which fields are random."""
        self._say(f"reading samples of {self._name} several times")
        number = self.passport.introduction.num_rows
        traits = None
        if number:
            traits = self._read(FindTraits(rows=tuple(choose_indices(number, NUM_READ, self._options.seed))))
        if traits is None and self.passport.epochs:
            records, _ = self._run(self._experiment(share=0.3, num_epochs=1, seed=self._options.seed + 1))
            other = _epochs(records)
            if other:
                traits = traits_of_walks(self.passport.epochs[0], other[0])
        if traits is not None:
            self.passport = dataclasses.replace(self.passport, traits=traits)

    def take_traits(self, other: _Side) -> None:
        """Takes over what was found for the same target."""
        self.passport = dataclasses.replace(self.passport, traits=other.passport.traits)

    def read_again(self, rows: tuple[int, ...]) -> None:
        """Reads some rows under many seeds; fields that change are random after all."""
        again = self._read(FindTraits(rows=rows, num_seeds=NUM_SEEDS))
        if again is None:
            return
        known = self.passport.traits
        # Seen in one of many seeds: seldom, and how seldom is not known.
        rates = {field: known.rates.get(field) or rate / NUM_SEEDS for field, rate in again.rates.items()}
        traits = dataclasses.replace(known, rates={**known.rates, **rates}, unseeded=known.unseeded | again.unseeded)
        self.passport = dataclasses.replace(self.passport, traits=traits)

    def freeze(self, *, share: float) -> None:
        """Walks one epoch with all generators set back before each sample."""
        self._say(f"walking {self._name} with its generators set back")
        telling = dataclasses.replace(self._telling, freezes=True)
        records, reason = self._run(self._experiment(share=share, num_epochs=1, telling=telling))
        epochs = _epochs(records)
        if epochs and not reason:
            self.passport = dataclasses.replace(self.passport, frozen=epochs[0])

    def show(self, epoch: int, sample_id: Any, *, freezes: bool) -> dict[str, Any] | None:
        """Returns the arrays of one sample as it was delivered; None: it did not come again."""
        passes = (self.passport.frozen,) if freezes else self.passport.epochs
        if epoch >= len(passes) or passes[epoch] is None:
            return None
        samples: tuple[Sample, ...] = passes[epoch].samples  # type: ignore[union-attr] # looked at above
        place = next((at for at, one in enumerate(samples) if sample_id in (one.name, one.row)), None)
        if place is None:
            return None
        telling = dataclasses.replace(self._telling, freezes=freezes, wanted=samples[place].row)
        wish = self._experiment(share=0.5, num_epochs=epoch + 1, telling=telling)
        records, _ = self._run(dataclasses.replace(wish, wanted_at=(epoch, place)))
        return next((one.arrays for one in records if isinstance(one, Shown)), None)

    @property
    def _telling(self) -> Telling:
        return Telling(one_in=self._options.one_in)

    def _experiment(
        self, *, share: float, num_epochs: int, seed: int | None = None, telling: Telling | None = None
    ) -> WalkDelivery:
        self._num_walks += 1
        folder = os.path.join(self._folder, str(self._num_walks))  # noqa: PTH118 - a text is at hand
        os.makedirs(folder)  # noqa: PTH103
        return WalkDelivery(
            num_workers=self._num_workers,
            num_epochs=num_epochs,
            seed=self._options.seed if seed is None else seed,
            folder=folder,
            telling=telling or self._telling,
            max_samples=self._options.max_samples,
            wants_batches="E5" in self._options.levels and telling is None and seed is None,
            most_s=max(1.0, share * self._lab.left_s),
            prepare=self._prepare,
        )

    def _read(self, experiment: FindTraits) -> Traits | None:
        records, _ = self._run(experiment)
        found = next((one for one in records if isinstance(one, Traits)), None)
        return found if found is not None and found.num_samples else None

    def _run(self, experiment: Experiment) -> tuple[list[Any], str]:
        """Runs it in a child of its own; returns its records, and why it did not end well."""
        self._lab.close()
        records: list[Any] = []
        ending = self._lab.run(experiment, records.append)
        self._has_died = ending.outcome == "crashed" and not ending.cause.startswith(ENDED_BY_US)
        in_hand = in_hands(experiment.folder) if isinstance(experiment, WalkDelivery) else ()
        reason = told(ending)
        if reason and in_hand:
            reason += f"; in hand: sample {', '.join(map(str, in_hand))}"
        return records, reason


def _epochs(records: Sequence[Any]) -> tuple[Epoch, ...]:
    """The epochs that were begun, from what a walk yielded."""
    batches: dict[int, list[Batch]] = {}
    whole: dict[int, bool] = {}
    for one in records:
        if isinstance(one, Batch):
            batches.setdefault(one.epoch, []).append(one)
        elif isinstance(one, Ended):
            batches.setdefault(one.epoch, [])
            whole[one.epoch] = one.is_whole
    return tuple(
        Epoch(batches=tuple(found), is_whole=whole.get(number, False)) for number, found in sorted(batches.items())
    )
