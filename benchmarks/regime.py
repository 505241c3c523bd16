"""What a benchmark is: a regime with its data, its sides, and how a side is measured.

    Regime ──make──▶ data in a folder            Side ──open(work)──▶ an iterable: each iter() is one epoch of batches
       └── sides: LIMIT, headrace, torch, peers       └── library: whose virtual environment it runs in

Imports nothing but the standard library: the same files run in the environments of all peers.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

LIMIT = "LIMIT"
"""The side that does the same work in a bare loop with preallocated output, without any loader."""

OWN_ENVIRONMENT = (LIMIT, "headrace", "torch")
"""Libraries of the project's own environment; every other one has a requirement file in `peers/`."""

FILES = (
    "rows",
    "tokens",
    "many_fields",
    "jpeg",
    "slow_tail",
    "latency",
    "python_transform",
    "trainer_beside",
    "start",
    "memory",
    "resume",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """What a side is opened with."""

    folder: Path
    """Where the regime's data lie."""

    size: dict[str, int]
    """The regime's numbers: how many samples, and so on."""

    def meta(self) -> dict[str, Any]:
        """What `make` wrote down beside the data."""
        return json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """One way to do the work of a regime."""

    name: str
    """Unique in its regime, with the settings: `torch, 2 workers`."""

    library: str
    open: Callable[[Work], Any]
    imports: tuple[str, ...] = ()
    """Modules imported before the clock starts, since a training script has them anyway."""

    prepare: Callable[[Work], None] | None = None
    """Writes the library's own format once, outside all measured time."""

    same_bytes: bool = True
    """False where a library's own kernels round differently: then only the labels are compared."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Regime:
    """One kind of work that loaders are compared at."""

    name: str
    title: str
    sizes: dict[str, dict[str, int]]
    """`full`, and `tiny` for tests and for `--quick`."""

    make: Callable[[Work], dict[str, Any]]
    """Writes the data into an empty folder and returns what to note in `meta.json`."""

    sides: tuple[Side, ...]
    measure: str = "throughput"
    """Name of a function in `meter`; what it returns as `value` is compared."""

    unit: str = "samples/s"
    more_is_better: bool = True
    made_in: str = "headrace"
    """The environment in which the data are made."""

    is_whole_epochs: bool = False
    """Measure whole epochs, because samples differ in cost."""

    is_sampled: bool = False
    """Memory is looked at in every round, not only in the one that is thrown away."""


class Epochs:
    """An iterable of which each iter() is one more epoch: begin(0), begin(1), ..."""

    def __init__(self, begin: Callable[[int], Iterable[Any]]) -> None:
        self.begin, self.next_epoch = begin, 0

    def __iter__(self) -> Iterator[Any]:
        epoch, self.next_epoch = self.next_epoch, self.next_epoch + 1
        return iter(self.begin(epoch))


def all_regimes() -> dict[str, Regime]:
    """Returns every regime by its name, in the order of the table."""
    return {
        regime.name: regime
        for file in FILES
        for regime in importlib.import_module(f"benchmarks.regimes.{file}").REGIMES
    }
