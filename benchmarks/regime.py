"""What a benchmark is: a regime with its data, its sides, and how a side is measured.

    Regime ──make──▶ data in a folder            Side ──open(work)──▶ an iterable: each iter() is one epoch of batches
       └── sides: LIMIT, headrace, torch, peers       └── library: whose virtual environment it runs in

Imports nothing but the standard library: the same files run in the environments of all peers.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

LIMIT = "LIMIT"
"""The side that does the same work in a bare loop with preallocated output, without any loader."""

OWN_ENVIRONMENT = (LIMIT, "headrace", "torch")
"""Libraries of the project's own environment; every other one has a requirement file in `peers/`."""

PEERS = "every peer"
"""As the `against` of a target: all sides but LIMIT and ours; the best of them counts."""

FILES = (
    "rows",
    "tokens",
    "many_fields",
    "jpeg",
    "cached",
    "slow_tail",
    "latency",
    "python_transform",
    "trainer_beside",
    "start",
    "memory",
    "resume",
    "cached",
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

    labels: Callable[[Any, Any], Any] | None = None
    """labels(loader, batch) for the check, where the last field of a batch does not number its samples."""

    warm_s: float = 0.0
    """Least seconds before the measured window: for libraries that tune themselves while they run."""

    is_settled: Callable[[Any], bool] | None = None
    """is_settled(loader): it has tuned itself. The window begins after that, or after `meter.SETTLE_S` without it."""

    notes: Callable[[Any], dict[str, Any]] | None = None
    """notes(loader): what it says about itself after the window, for the record."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """What a side of ours should reach; compared with what was measured, and printed beside it. No test, no exit status."""

    side: str
    at_least: float | None = None
    at_most: float | None = None
    against: str = ""
    """Beginnings of names of sides, with | between, or PEERS: the best median of them is the reference, and the target is
    for the ratio ours / theirs. Empty: the target is for the value itself."""

    key: str = "value"
    """Which number of a round."""

    unit: str = ""
    """Of the number itself, where there is no reference."""


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

    seconds: float = 1.5
    """Length of a measured window."""

    targets: tuple[Target, ...] = ()


def make_folder(target: Path, fill: Callable[[Path], object]) -> None:
    """Makes a folder unless it is there: filled beside it and renamed when whole, so nobody ever sees half of it."""
    if target.exists():
        return
    beside = target.with_name(f"{target.name}.{os.getpid()}.making")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    fill(beside)
    try:
        beside.rename(target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(beside)  # another run was faster


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
        if importlib.util.find_spec(f"benchmarks.regimes.{file}")
        for regime in importlib.import_module(f"benchmarks.regimes.{file}").REGIMES
    }
