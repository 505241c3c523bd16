"""Whether `headrace tune` keeps its promises: the gain it expects of a setting against the gain that is found afterwards.

tune (applies its change to a copy of the file) ──▶ both files timed without headrace, in turn, each time in a fork of its
own ──▶ is what was gained inside the interval that was promised?

`python tests/bottlenecks/gains.py [--budget S] [--rounds N] [--seconds S] [NAME ...]`; without names: the limited loops.
Exit status 1: fewer than 90 % of the promises kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from oracle import loop, timed
from truth import Case, cases, noise

NEEDED = 0.9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What `tune` said of one case."""

    outcome: str
    says: str = ""
    low: float = 0.0
    value: float = 0.0
    high: float = 0.0
    text: str = ""
    """The file with the change; empty: nothing was changed."""


def tuned(case: Case, budget_s: float) -> Promise:
    """Types the command beside a copy of the case's file."""
    with tempfile.TemporaryDirectory(prefix="gains-") as place:
        folder = pathlib.Path(place)
        (folder / case.file).write_text(case.text, encoding="utf-8")
        typed = [sys.executable, "-m", "headrace", "tune", f"{case.file}:make_loader"]
        typed += ["--train", f"{case.file}:{case.train}", "--budget", f"{budget_s:g}s", "--format", "json"]
        with noise(case.noise):
            done = subprocess.run(
                [*typed, "--apply", "--yes"], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
        try:
            told = json.loads(done.stdout)
        except ValueError:
            return Promise(outcome="none", says=done.stderr.strip().splitlines()[-1] if done.stderr else "")
        text = (folder / case.file).read_text(encoding="utf-8")
    gain = told["gain"]
    if told["verdict"] != "change" or gain is None:
        return Promise(outcome=told["verdict"], says=told["summary"])
    interval = gain["interval"]
    return Promise(
        outcome="change",
        says=told["says"],
        low=interval["low"],
        value=gain["value"],
        high=math.inf if interval["high"] is None else interval["high"],
        text=text if text != case.text else "",
    )


def epoch(loader, step, seconds: float):
    """Times steps, and what the start of an epoch adds to each of its steps: `tune` promises for whole epochs."""
    steady = loop(loader, step, seconds)
    began = time.perf_counter()
    batches = iter(loader)  # held: ending its workers is no part of the start
    step(next(batches))
    start_s = time.perf_counter() - began - steady.mean_s
    try:
        num_batches = len(loader)
    except TypeError:
        return steady
    return dataclasses.replace(steady, mean_s=steady.mean_s + max(start_s, 0.0) / num_batches)


def achieved(case: Case, text: str, rounds: int, seconds: float) -> tuple[float, float]:
    """Returns the gain and the standard error of its logarithm: A B B A, the mean time of a step each time."""
    logs = []
    with noise(case.noise):
        for number in range(rounds):
            order = (case.text, text) if number % 2 == 0 else (text, case.text)
            first, second = (timed(one, case, epoch, seconds).mean_s for one in order)
            before_s, after_s = (first, second) if number % 2 == 0 else (second, first)
            logs.append(math.log(before_s / after_s))
    error = statistics.stdev(logs) / math.sqrt(rounds) if rounds > 1 else math.inf
    return math.exp(statistics.fmean(logs)) - 1, error


HEAD = f"{'case':<18}{'promised':<28}{'achieved':<18}said"


def main() -> int:
    """Runs what is asked for; exit status 1 if too few promises were kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", help="beginnings of case names")
    parser.add_argument("--budget", type=float, default=150.0, help="seconds of each tuning")
    parser.add_argument("--rounds", type=int, default=6, help="of each file, in turn")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each timing")
    asked = parser.parse_args()
    import torch  # noqa: F401  here, so that every fork has it

    print(HEAD, flush=True)
    kept = []
    for case in cases(asked.only):
        if case.verdict != "limited" or case.missing() is not None:
            continue
        promise = tuned(case, asked.budget)
        if not promise.text:
            print(f"{case.name:<18}{'-':<28}{'-':<18}{promise.outcome}: {promise.says}", flush=True)
            continue
        gain, error = achieved(case, promise.text, asked.rounds, asked.seconds)
        is_kept = promise.low <= gain <= promise.high
        kept.append(is_kept)
        promised = f"{promise.value:+.0%} [{promise.low:+.0%}, {promise.high:+.0%}]"
        found = f"{gain:+.0%} +-{error:.0%}"
        print(
            f"{case.name:<18}{promised:<28}{found:<18}{'kept' if is_kept else 'NOT KEPT'}: {promise.says}", flush=True
        )
    print(f"\n{sum(kept)} of {len(kept)} promises kept")
    return int(sum(kept) < NEEDED * len(kept))


if __name__ == "__main__":
    sys.exit(main())
