"""Interleaved rounds: each round measures every side once, in a fresh process each, the next round in the opposite order.

A machine's speed drifts, so sides are compared within a round: a ratio is the median of the rounds' ratios. Round -1 is
thrown away: it checks that the side delivers the right samples, pays for cold caches, and is watched for memory. Every
value of every later round is kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.regime import LIMIT, Regime, Side
from benchmarks.targets import best_of

from benchmarks import environments, proc

HERE = Path(__file__).parent
TIMEOUT_S = 120
PREPARE_TIMEOUT_S = 600
"""For a process that makes data, a million samples in a library's own format."""
DATA_VERSION = 3
"""Raised when a regime makes other data than before."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
"""Numeric libraries compute in one thread on every side: what is measured is loading."""


class Failed(Exception):
    """A side could not do its work; says why in one line."""


def run_child(
    action: str, regime: Regime, side: Side | None, *, size: str, seconds: float = 1.0, is_watched: bool = False
) -> dict[str, Any]:
    """Returns what a fresh process measured; with `is_watched` also `memory`: what was seen of it from outside.

    Raises:
        Failed: with the last line of its errors. The process and all that it started are gone then.
        environments.NotInstalled: the side's library is not there.
    """
    library = regime.made_in if side is None else side.library
    with tempfile.TemporaryDirectory() as folder:
        result, errors = Path(folder, "result.json"), Path(folder, "errors.txt")
        command = [environments.python_of(library), "-m", "benchmarks.child", action, regime.name]
        command += ["--side", side.name if side else "", "--folder", str(data_folder(regime, size)), "--size", size]
        command += ["--seconds", str(seconds), "--result", str(result)]
        with errors.open("wb") as file:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                cwd=HERE.parent,  # so that the same modules are found in every environment, and in spawned workers
                env={**os.environ, **ONE_THREAD},
            )
            watch = proc.Watch(child.pid) if is_watched else None
            if watch:
                watch.start()
            try:
                status = child.wait(PREPARE_TIMEOUT_S if action in {"make", "prepare"} else TIMEOUT_S)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                seen = watch.stop() if watch else []
                _end(child)
        if status is None:
            raise Failed(f"not done within {TIMEOUT_S} s")
        if status or not result.exists():
            raise Failed(_last_line(errors) or f"ended with status {status}")
        found = json.loads(result.read_text(encoding="utf-8"))
        return {**found, "memory": seen} if is_watched else found


def data_folder(regime: Regime, size: str) -> Path:
    """Where the data of a regime are kept between runs: in the folder for temporary files."""
    name = regime.name.replace(" ", "-")
    return Path(tempfile.gettempdir()) / "headrace-benchmarks" / f"{name}-{size}-v{DATA_VERSION}"


def make_data(regime: Regime, size: str) -> None:
    """Makes the data of a regime unless they are there."""
    if not data_folder(regime, size).exists():
        run_child("make", regime, None, size=size)


def interleaved(sides: list[str], number: int) -> list[str]:
    """The order in which round `number` measures: there, and back (ABBA)."""
    return list(sides) if number % 2 else list(reversed(sides))


def compare(
    regime: Regime,
    sides: Iterable[Side],
    *,
    num_rounds: Callable[[Side], int],
    size: str,
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Returns the record of a regime: of each side its round values, or the reason why there are none.

    A side with fewer rounds than others takes part in the first ones.
    """
    chosen = {side.name: side for side in sides}
    record: dict[str, Any] = {
        "name": regime.name,
        "title": regime.title,
        "size": regime.sizes[size],
        "unit": regime.unit,
        "more_is_better": regime.more_is_better,
        "load_before": os.getloadavg()[0],
        "seconds": seconds,
        "targets": [dataclasses.asdict(target) for target in regime.targets if target.side in chosen],
        "sides": {name: {"library": side.library, "rounds": []} for name, side in chosen.items()},
    }
    try:
        make_data(regime, size)
    except (Failed, environments.NotInstalled) as error:
        for entry in record["sides"].values():
            entry["reason"] = f"no data: {error}"
        return record
    for number in range(-1, max(map(num_rounds, chosen.values()), default=0)):
        names = [name for name, side in chosen.items() if number < num_rounds(side)]
        for name in interleaved([name for name in names if "reason" not in record["sides"][name]], number):
            say(f"{regime.name}, round {number + 1}: {name}")
            entry = record["sides"][name]
            begin_s = time.monotonic()
            try:
                if number < 0:
                    entry["warm_up"] = _first(regime, chosen[name], size, seconds)
                else:
                    values = run_child(
                        "measure", regime, chosen[name], size=size, seconds=seconds, is_watched=regime.is_sampled
                    )
                    entry["version"] = values.pop("version", None)
                    entry["rounds"].append(_with_memory(values) if regime.is_sampled else values)
            except (Failed, environments.NotInstalled) as error:
                entry["reason"] = str(error)
            entry["took_s"] = round(entry.get("took_s", 0) + time.monotonic() - begin_s, 1)
        if number < 0:
            refuse_other_samples(record)
    return record


def refuse_other_samples(record: dict[str, Any]) -> None:
    """Gives a reason to every side that did not deliver the same samples as the first one that was checked."""
    checks = {name: entry["warm_up"].get("check") for name, entry in record["sides"].items() if "warm_up" in entry}
    checked = {name: check for name, check in checks.items() if check}
    if not checked:
        return
    reference_name, reference = next(iter(checked.items()))
    for name, check in checked.items():
        for what in ("num_samples", "labels", "contents"):
            if None not in {check[what], reference[what]} and check[what] != reference[what]:
                record["sides"][name]["reason"] = (
                    f"not the same samples as {reference_name}: {what} {check[what]}, there {reference[what]}"
                )
                break


def ratios(record: dict[str, Any], side: str, reference: str) -> list[float]:
    """How many times better a side was than the reference, round by round; above 1 = better."""
    pairs = zip(record["sides"][side]["rounds"], record["sides"][reference]["rounds"], strict=False)
    values = [(ours["value"], theirs["value"]) for ours, theirs in pairs if ours["value"] and theirs["value"]]
    return [ours / theirs if record["more_is_better"] else theirs / ours for ours, theirs in values]


def best(record: dict[str, Any], library: str) -> str | None:
    """The side of a library with the best median; None if none was measured."""
    return best_of(record, [name for name, entry in record["sides"].items() if entry["library"] == library])


def limit_of(record: dict[str, Any]) -> str | None:
    """The name of the LIMIT side, if there is one with values."""
    return best(record, LIMIT)


def _first(regime: Regime, side: Side, size: str, seconds: float) -> dict[str, Any]:
    """Prepares, checks on one epoch, and watches one run for memory."""
    needs_check = regime.measure in {"throughput", "trainer"}
    if needs_check:
        make_data(regime, "tiny")
    for each in sorted({size, "tiny"} if needs_check else {size}) if side.prepare is not None else ():
        run_child("prepare", regime, side, size=each)
    found: dict[str, Any] = {}
    if needs_check:
        found["check"] = run_child("check", regime, side, size="tiny")
    if size == "tiny":
        return found
    # Half the window is long enough to see the memory and to pay for cold caches.
    values = run_child("measure", regime, side, size=size, seconds=seconds / 2, is_watched=True)
    found["peak_bytes"] = max((size for _, size in values["memory"]), default=None)
    return found


def _with_memory(values: dict[str, Any]) -> dict[str, Any]:
    """Turns what was seen of the memory into the value, and its growth from the second epoch to the third."""
    seen, (_, second_s, third_s) = values.pop("memory"), values.pop("epoch_ends")
    in_second = max((size for when, size in seen if when <= second_s), default=0)
    in_third = max((size for when, size in seen if second_s < when <= third_s), default=0)
    mebi = 1 << 20
    return {"value": max(in_second, in_third) / mebi, "growth_mib": (in_third - in_second) / mebi}


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends whatever is left of the session that was started for the child."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    time.sleep(0.05)


def _last_line(path: Path) -> str:
    rows = [row.strip() for row in path.read_text(encoding="utf-8", errors="replace").splitlines() if row.strip()]
    errors = [row for row in rows if "Error" in row or "error" in row]
    return (errors or rows or [""])[-1][:200]


if sys.platform != "linux":
    raise SystemExit("the benchmarks read /proc: Linux only")
