"""Do two loaders deliver the same data? One answer per level, and the first difference of each."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.doctor.evidence.speeds import SpeedRatio
from headrace.errors import SampleId

__all__ = ["LEVELS", "DeliverySide", "Difference", "Equivalence", "Level", "LevelResult", "Policy"]

Level = Literal["E0", "E1", "E2", "E3", "E4", "E5"]
LEVELS: tuple[Level, ...] = ("E0", "E1", "E2", "E3", "E4", "E5")
"""E0 the same samples, E1 in the same order and batches, E2 with the same targets, E3 and fixed fields, E4 and random
fields, by policy, E5 in batches of the same form and bytes."""
Policy = Literal["counter", "stream", "frozen"]
"""How random fields were compared. counter: bit for bit as delivered. stream: bit for bit with every generator set back
before each sample, and as delivered no worker draws what another draws, no epoch repeats another. frozen: the former
alone."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place at which two deliveries are not the same. None: has no meaning at this level."""

    epoch: int | None = None
    position: int | None = None
    """Samples that the first loader had delivered in this epoch before it; if only the second delivers it, of that one."""
    batch: int | None = None
    sample_id: SampleId | None = None
    field: str | None = None
    in_a: str
    """What the first loader has there: dtype, shape and digest of a value, an id, a count; never contents."""
    in_b: str
    max_difference: float | None = None
    """Largest absolute difference of two arrays of one shape; small = close, and still not the same. None: not numbers,
    or not looked at."""
    differing_share: float | None = None
    """Part of the two arrays' elements that differ, above 0 up to 1."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """The answer at one level."""

    level: Level
    verdict: Literal["proven", "differs", "not comparable", "not asked"]
    reason: str = ""
    """Why it is not comparable or not asked; how many differ; on what it was proven."""
    first: Difference | None = None
    num_compared: int = 0
    """Samples (E5: batches) that were compared, over all epochs; if order or samples differ, of the first epoch in which
    they do."""
    num_different: int = 0
    """Of these, such as differ."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySide:
    """One of the two loaders, and how its walk went."""

    spec: str
    kind: str
    """Class of the loader."""
    num_workers: int
    num_samples: tuple[int, ...]
    """Samples delivered, by epoch."""
    refused: tuple[SampleId, ...] = ()
    """The first of the samples that were asked for and left out or replaced, by the loader or its collate function."""
    num_refused: int = 0
    stopped: str = ""
    """Why the walk ended before its end; empty: it did not."""
    notes: tuple[str, ...] = ()
    """What explains its numbers: drop_last, drawing with replacement, padding over ranks."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence(Evidence):
    """The whole comparison."""

    side_a: DeliverySide
    side_b: DeliverySide
    levels: tuple[LevelResult, ...]
    """All six, in order."""
    policy: Policy | None
    """None: random fields were not compared, or there are none."""
    ids: Literal["names", "rows", "keys", "contents"]
    """What tells samples apart: the data set's own names, row numbers, keys inside the samples, or digests of the fields
    that are not random, where there is nothing else."""
    num_epochs: int
    one_in: int = 1
    """Fields were compared of one in so many samples, chosen by a hash of the id."""
    max_samples: int | None = None
    """Samples of each epoch that were walked at most; None: all."""
    speed: SpeedRatio | None = None
    """How fast B is beside A; None: not asked."""

    @property
    def verdict(self) -> Literal["same", "different", "inconclusive"]:
        """different: something differs; inconclusive: nothing does, and something asked for could not be compared."""
        verdicts = {one.verdict for one in self.levels}
        if "differs" in verdicts:
            return "different"
        return "same" if "not comparable" not in verdicts and "proven" in verdicts else "inconclusive"

    @property
    def exit_status(self) -> int:
        """0 the same, 1 different, 3 inconclusive."""
        return {"same": 0, "different": 1, "inconclusive": 3}[self.verdict]

    @property
    def first_level(self) -> LevelResult | None:
        """The lowest level that differs; None: none does."""
        return next((one for one in self.levels if one.verdict == "differs"), None)
