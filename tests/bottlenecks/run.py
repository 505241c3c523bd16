"""The exam of `headrace measure`: what it says of loops whose limit is known.

    cases/*.py      loaders and training steps as users write them, without a hint for the tool
    truth.toml      what limits each, and why; `oracle.py` finds it without headrace

`python tests/bottlenecks/run.py` (= `make bottlenecks`) runs all of it and prints case by case: truth, verdict, right or
not. Exit status 1: fewer than 95 % right, or a healthy loop called limited. One case at a time: timings that share the
cores with each other say nothing.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from truth import Case, cases, noise

LIMIT_S = 300.0
"""A case that takes longer is answered wrong: a measurement keeps to its budget."""
NEEDED = 0.95


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was said of one case."""

    case: Case
    verdict: str
    """`healthy`, `limited`, `inconclusive`; `none`: there is no report."""
    causes: tuple[str, ...] = ()
    sentence: str = ""
    """The conclusion, or why there is none."""
    wall_s: float

    @property
    def is_right(self) -> bool:
        if self.verdict == "inconclusive":
            return self.case.may_be_inconclusive
        if self.verdict != self.case.verdict:
            return False
        return self.verdict == "healthy" or (bool(self.causes) and self.causes[0] in self.case.cause)

    @property
    def is_false_alarm(self) -> bool:
        return self.case.verdict == "healthy" and self.verdict == "limited"

    @property
    def beside(self) -> tuple[str, ...]:
        """Causes named that are neither the truth nor allowed beside it. Shown, and not counted."""
        allowed = {*self.case.cause, *self.case.also}
        return tuple(cause for cause in self.causes if cause not in allowed)

    @property
    def said(self) -> str:
        return f"{self.verdict}: {', '.join(self.causes)}" if self.causes else self.verdict


def run(case: Case, seed: int | None = None) -> Outcome:
    """Types the command, as a user would, beside a copy of the case's file."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bottlenecks-") as place:
        folder = pathlib.Path(place)
        (folder / case.file).write_text(case.text, encoding="utf-8")
        report = folder / "report.json"
        typed = [sys.executable, "-m", "headrace", "measure", f"{case.file}:make_loader"]
        typed += ["--train", f"{case.file}:{case.train}", "--format", "json", "--output", str(report), *case.options]
        typed += [] if seed is None else ["--seed", str(seed)]
        env = {**os.environ, "TMPDIR": place}
        try:
            with noise(case.noise):
                done = subprocess.run(
                    typed,
                    cwd=folder,
                    env=env,
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                    stdin=subprocess.DEVNULL,
                )
        except subprocess.TimeoutExpired:
            return Outcome(case=case, verdict="none", sentence=f"no end within {LIMIT_S:g} s", wall_s=LIMIT_S)
        wall_s = time.monotonic() - started
        said = None
        with contextlib.suppress(OSError, ValueError):
            said = json.loads(report.read_bytes())
        keep = os.environ.get("BOTTLENECKS_KEEP")
        if said is not None and keep:
            (pathlib.Path(keep) / f"{case.name}.json").write_bytes(report.read_bytes())
    if said is None:
        last = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        return Outcome(
            case=case, verdict="none", sentence=f"no report (exit status {done.returncode}): {last}", wall_s=wall_s
        )
    return read(case, said, wall_s)


def read(case: Case, report: dict[str, Any], wall_s: float) -> Outcome:
    """Takes the conclusion out of a report."""
    conclusion = report["conclusion"]
    return Outcome(
        case=case,
        verdict=conclusion["verdict"],
        causes=tuple(row["cause"] for row in conclusion["causes"]),
        sentence=conclusion["settling"] or conclusion["sentence"],
        wall_s=wall_s,
    )


def line(one: Outcome) -> str:
    """Returns the row of one case."""
    truth = one.case.cause[0] if one.case.verdict == "limited" else "healthy"
    mark = "ok" if one.is_right else "WRONG"
    beside = f"   (beside the truth: {', '.join(one.beside)})" if one.beside and one.is_right else ""
    why = "" if one.is_right else f"\n{'':<4}{one.sentence}"
    return f"{one.case.name:<18}{truth:<18}{mark:<7}{one.wall_s:>5.0f} s  {one.said}{beside}{why}"


HEAD = f"{'case':<18}{'truth':<18}{'':<7}{'took':>7}  said"


def totals(outcomes: Sequence[Outcome]) -> str:
    """Returns the last line."""
    right = sum(one.is_right for one in outcomes)
    healthy = [one for one in outcomes if one.case.verdict == "healthy"]
    return (
        f"{right} of {len(outcomes)} right ({right / max(len(outcomes), 1):.0%}); "
        f"{sum(one.is_false_alarm for one in healthy)} false alarms on {len(healthy)} healthy loops; "
        f"{sum(one.verdict == 'inconclusive' for one in outcomes)} inconclusive; "
        f"slowest {max((one.wall_s for one in outcomes), default=0):.0f} s"
    )


def passes(outcomes: Sequence[Outcome]) -> bool:
    """95 % right, and no healthy loop called limited."""
    right = sum(one.is_right for one in outcomes)
    return right >= NEEDED * len(outcomes) and not any(one.is_false_alarm for one in outcomes)


def main() -> int:
    """Runs what is asked for; exit status 1 if too much of it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of case names")
    parser.add_argument("--repeat", type=int, default=1, help="runs in a row, each with another seed")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time; more than one disturbs the timings")
    asked = parser.parse_args()
    status = 0
    for number in range(asked.repeat):
        chosen = cases(asked.only)
        todo = [case for case in chosen if case.missing() is None]
        print(HEAD, flush=True)
        outcomes = []
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            for outcome in pool.map(lambda case, seed=number: run(case, seed), todo):
                outcomes.append(outcome)
                print(line(outcome), flush=True)
        for case in chosen:
            if (reason := case.missing()) is not None:
                print(f"{case.name:<18}left out: {reason}")
        print(f"\n{totals(outcomes)}", flush=True)
        status |= not passes(outcomes)
    return status


if __name__ == "__main__":
    sys.exit(main())
