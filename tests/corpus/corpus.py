"""The corpus: loaders and scripts as users write them, sick and healthy, and what the doctor must say of each.

    cases/<rule or healthy>/case.toml      what is expected
    cases/<rule or healthy>/*.py           the code, without a hint for the tool

`python tests/corpus/corpus.py` (= `make corpus`) runs all of it and prints per rule: found, missed, false alarms.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import importlib.util
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

CASES = pathlib.Path(__file__).parent / "cases"
LIMIT_S = 300.0
"""A case that takes longer than this is a miss: the doctor keeps to its budget."""
TOO_MUCH = {"error", "warning"}
KEYS = {"file", "target", "command", "args", "expect", "also", "names", "extra", "options"} | {
    "made_from",
    "change",
    "needs_all_cores",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file and what must be said of it."""

    folder: pathlib.Path
    file: str
    target: str = "make_loader"
    command: str = "diagnose"
    args: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    """Codes that must be found at error or warning; none: nothing above info may be."""
    also: tuple[str, ...] = ()
    """Codes that may be found as well: the same cause, seen from elsewhere."""
    names: tuple[str, ...] = ()
    """Each stands in the message, the place or the sample ids of an expected finding."""
    extra: str | None = None
    """A module without which the case cannot run."""
    options: tuple[str, ...] = ()
    made_from: str | None = None
    """Path, from the case's folder, of the file that this one is but for `change`; None: it lies there itself."""
    change: tuple[tuple[str, str], ...] = ()
    """(text that stands once in `made_from`, what stands in its place): the fault, or what takes it away."""

    needs_all_cores: bool = False
    """Whether two threads gain anything is not seen while another case runs beside."""

    @property
    def text(self) -> str:
        """The code of its file."""
        text = (self.folder / (self.made_from or self.file)).read_text(encoding="utf-8")
        for old, new in self.change:
            if text.count(old) != 1:
                raise ValueError(
                    f"{self.name}: {old!r} stands {text.count(old)} times in {self.made_from}, and not once"
                )
            text = text.replace(old, new)
        return text

    @property
    def name(self) -> str:
        return f"{self.folder.name}/{self.file}" + ("" if self.target == "make_loader" else f":{self.target}")

    @property
    def is_healthy(self) -> bool:
        return not self.expect

    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""
        names = (self.extra or "").replace(",", " ").split()
        lacking = [name for name in names if importlib.util.find_spec(name) is None]
        return f"{', '.join(lacking)} is not installed" if lacking else None

    def arguments(self, report: pathlib.Path) -> list[str]:
        """What is typed after `headrace`, the case's folder being the current one."""
        written = ["--format", "json", "--output", str(report), *self.options]
        if self.command == "watch":
            return ["watch", *written, self.file, *self.args]
        return [self.command, *written, f"{self.file}:{self.target}"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one case."""

    case: Case
    found: tuple[str, ...]
    """Codes at error or warning."""
    faults: tuple[str, ...]
    """What is wrong with the answer, in words; empty: it is right."""
    wall_s: float


def cases(only: Iterable[str] = (), home: pathlib.Path = CASES) -> list[Case]:
    """Returns every case below a folder, or those whose name begins with one of the words given."""
    found = [case for table in sorted(home.glob("*/case.toml")) for case in _cases_of(table.parent)]
    wanted = tuple(only)
    return [case for case in found if not wanted or case.name.startswith(wanted)]


def _cases_of(folder: pathlib.Path) -> list[Case]:
    rows = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8")).get("case", [])
    for row in rows:
        if unknown := set(row) - KEYS:
            raise ValueError(f"{folder.name}/case.toml: {', '.join(sorted(unknown))}: no such key")
        if not (folder / (source := row.get("made_from", row["file"]))).is_file():
            raise ValueError(f"{folder.name}/case.toml: there is no file {source}")
    return [Case(folder=folder, **{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in rows]


def type_in(arguments: Sequence[str], folder: pathlib.Path, place: str) -> subprocess.CompletedProcess[str]:
    """Types `headrace ...` in a folder, as a user would; `place` is for what it writes meanwhile."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": place},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
    )


def run(case: Case, type_in: Callable[..., subprocess.CompletedProcess[str]] = type_in) -> Outcome:
    """Types the command in a copy of the case's folder; compares what the report says."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        folder = shutil.copytree(case.folder, pathlib.Path(place) / "case", ignore=shutil.ignore_patterns("case.toml"))
        (folder / case.file).write_text(case.text, encoding="utf-8")
        report = pathlib.Path(place) / "report.json"
        try:
            done = type_in(case.arguments(report), folder, place)
        except subprocess.TimeoutExpired:
            return Outcome(case=case, found=(), faults=(f"no end within {LIMIT_S:g} s",), wall_s=LIMIT_S)
        said = None
        with contextlib.suppress(OSError, ValueError):
            said = json.loads(report.read_bytes())
        if said is None:
            last = (done.stderr or done.stdout).strip().splitlines()[-3:]
            faults: tuple[str, ...] = (f"no report (exit status {done.returncode}): {' / '.join(last)}",)
            return Outcome(case=case, found=(), faults=faults, wall_s=time.monotonic() - started)
    found = tuple(sorted({row["code"] for row in said["findings"] if row["severity"] in TOO_MUCH}))
    return Outcome(case=case, found=found, faults=tuple(judge(case, said)), wall_s=time.monotonic() - started)


def judge(case: Case, report: dict[str, Any]) -> Iterable[str]:
    """Yields what is wrong with a report."""
    loud = [row for row in report["findings"] if row["severity"] in TOO_MUCH]
    codes = {row["code"] for row in loud}
    for code in case.expect:
        if code not in codes:
            skipped = [row["reason"] for row in report["skipped"] if row["code"] == code]
            yield f"missed {code}" + (f" (skipped: {skipped[0]})" if skipped else "")
    for code in sorted(codes - set(case.expect) - set(case.also)):
        message = next(row["message"] for row in loud if row["code"] == code)
        yield f"false alarm {code}: {message}"
    expected = [row for row in loud if row["code"] in case.expect]
    told = " ".join(f"{row['message']} {row['where']} {row['sample_ids']}" for row in expected)
    for name in case.names:
        if expected and name not in told:
            yield f"{name!r} is not named in: {told[:300]}"
    for row in report["skipped"]:
        if row.get("crashed"):
            yield f"rule {row['code']} failed itself: {row['reason']}"


def table(outcomes: Sequence[Outcome]) -> str:
    """Returns the table: a line per rule, then what is wrong, case by case."""
    wanted, found, alarms = collections.Counter[str](), collections.Counter[str](), collections.Counter[str]()
    for one in outcomes:
        wanted.update(one.case.expect)
        found.update(set(one.case.expect) & set(one.found))
        alarms.update(set(one.found) - set(one.case.expect) - set(one.case.also))
    lines = [f"{'rule':<8}{'found':>7}{'missed':>8}{'false alarms':>14}"]
    lines += [
        f"{code:<8}{found[code]:>7}{wanted[code] - found[code]:>8}{alarms[code]:>14}"
        for code in sorted(wanted | alarms)
    ]
    healthy = [one for one in outcomes if one.case.is_healthy]
    clean = sum(not one.faults for one in healthy)
    slowest = max((one.wall_s for one in outcomes), default=0)
    totals = (
        f"{sum(found.values())} of {sum(wanted.values())} faults found; {clean} of {len(healthy)} healthy cases clean"
    )
    lines += ["", f"{totals}; slowest {slowest:.0f} s"]
    lines += [f"  {one.case.name}: {fault}" for one in outcomes for fault in one.faults]
    return "\n".join(lines)


def main(home: pathlib.Path = CASES) -> int:
    """Runs what is asked for of the cases below a folder; exit status 1 if any answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", help="beginnings of case names: hr205, healthy/lightning")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="cases at a time")
    parser.add_argument("--repeat", type=int, default=1, help="runs in a row")
    parser.add_argument("--healthy", action="store_true", help="only the cases of which nothing may be said")
    asked = parser.parse_args()
    status = 0
    for number in range(asked.repeat):
        chosen = [case for case in cases(asked.only, home) if case.is_healthy or not asked.healthy]
        todo = [case for case in chosen if case.missing() is None]
        left_out = [case for case in chosen if case.missing() is not None]
        beside = [case for case in todo if not case.needs_all_cores]
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            alone = (run(case) for case in todo if case.needs_all_cores)
            outcomes = []
            for outcome in itertools.chain(pool.map(run, beside), alone):
                outcomes.append(outcome)
                mark = "ok  " if not outcome.faults else "BAD "
                print(f"{mark} {outcome.case.name} {outcome.wall_s:.1f} s", file=sys.stderr, flush=True)
        print(table(outcomes) if asked.repeat == 1 else f"run {number + 1}\n{table(outcomes)}", flush=True)
        for case in left_out:
            print(f"  left out: {case.name}: {case.missing()}")
        status |= any(outcome.faults for outcome in outcomes)
    return status


if __name__ == "__main__":
    sys.exit(main())
