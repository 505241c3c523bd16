"""Runs the benchmarks: one table to read, and every value as JSON.

python -m benchmarks.run [--quick] [--regimes rows,jpeg] [--peers none] [--rounds 5] [--output FILE]
python -m benchmarks.run --dry-run                      how many processes, how many minutes
python -m benchmarks.run --resume --output FILE         goes on with the regimes that FILE lacks
python -m benchmarks.run --merge a.json b.json          one table of several runs; measures nothing

What has no loader to be compared with has a program of its own:

python benchmarks/checkpoint_pause.py    how long a training run stands still for a checkpoint
python benchmarks/measure_overhead.py    what `headrace measure` costs the loader that it times
python benchmarks/watch_overhead.py      what `headrace watch` costs a script
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.regime import OWN_ENVIRONMENT, Regime, Side, all_regimes
from benchmarks.rounds import compare

from benchmarks import budget, environments, measure, order, records

ORDER = "order"
"""Not a loader's work but arithmetic, compared within this process: see `order.py`."""

RESULTS = Path(__file__).parent / "results"
ROUNDS, PEER_ROUNDS = 5, 3
"""Targets are about LIMIT, ours and PyTorch; the other libraries' sides are as many again, and take part in the first
rounds only, so that the whole fits into an hour."""


def main() -> None:
    """Measures, prints, writes."""
    options = _options()
    # Ended from outside, it still ends the process that it measures, which has a session of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _run(options)
    except records.CannotMerge as error:
        raise SystemExit(f"benchmarks: {error}") from None


def _run(options: argparse.Namespace) -> None:
    if options.merge:
        record = records.merged([records.load(path) for path in options.merge])
        if options.output:
            records.write(options.output, record)
    elif options.dry_run:
        print(_plan(options))
        return
    else:
        record = _measure(options)
    print(records.page(record))
    if options.output:
        print(f"\nevery value: {options.output}")
    if options.write_docs:
        records.write_docs(options.write_docs, record)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    done = records.load(options.output) if options.resume and options.output.exists() else None
    begin_s = time.monotonic()
    record: dict[str, Any] = {
        "schema": records.SCHEMA,
        "created": dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", "-m", "benchmarks.run", *sys.argv[1:]]),
        "machine": measure.machine(),
        "size": options.size,
        "rounds": options.rounds,
        "peer_rounds": options.peer_rounds,
        "took_s": 0,
        "regimes": [],
    }
    there = {regime["name"] for regime in done["regimes"]} if done else set()

    def keep() -> dict[str, Any]:
        record["took_s"] = round(time.monotonic() - begin_s)
        whole = records.merged([done, record]) if done else record
        records.write(options.output, whole)
        return whole

    whole = keep()
    for name in options.regimes:
        if name == ORDER and not (done and ORDER in done):
            orders = [measure.run(each, options.rounds) for each in order.comparisons(is_quick=options.quick)]
            record[ORDER] = [dataclasses.asdict(result) for result in orders]
        elif name != ORDER and name not in there:
            regime = all_regimes()[name]
            record["regimes"].append(
                compare(
                    regime,
                    _sides(regime, options),
                    num_rounds=lambda side: budget.num_rounds(side, options.rounds, options.peer_rounds),
                    size=options.size,
                    seconds=_seconds(regime, options),
                    say=lambda text: print(text, file=sys.stderr, flush=True),
                )
            )
        whole = keep()
    return whole


def _plan(options: argparse.Namespace) -> str:
    """Returns what a run would take, regime by regime."""
    rows, total, total_s = ["| regime | sides | processes | minutes |", "|---|--:|--:|--:|"], 0, 0.0
    for name in (name for name in options.regimes if name != ORDER):
        regime = all_regimes()[name]
        sides = _sides(regime, options)
        seconds = _seconds(regime, options)
        num, took_s = budget.estimate(regime, sides, options.rounds, options.peer_rounds, seconds)
        rows.append(f"| {name} | {len(sides)} | {num} | {took_s / 60:.1f} |")
        total, total_s = total + num, total_s + took_s
    rows.append(f"| all | | {total} | {total_s / 60:.0f} |")
    return "\n".join(rows) + "\n\nMaking data and installing peers, once, comes on top: some ten minutes."


def _sides(regime: Regime, options: argparse.Namespace) -> list[Side]:
    libraries = {*OWN_ENVIRONMENT, *options.peers}
    sides = [side for side in regime.sides if side.library in libraries]
    return [side for side in sides if not options.sides or any(text in side.name for text in options.sides)]


def _seconds(regime: Regime, options: argparse.Namespace) -> float:
    return options.seconds or (0.3 if options.quick else regime.seconds)


def _options() -> argparse.Namespace:
    names, peers = [*all_regimes(), ORDER], environments.peers()
    lines = (__doc__ or "").splitlines()
    others = lines[next(number for number, line in enumerate(lines) if line.startswith("What has no loader")) :]
    parser = argparse.ArgumentParser(
        description=lines[0], epilog="\n".join(others), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small data, 2 rounds: to see that everything runs")
    parser.add_argument("--dry-run", action="store_true", help="say how many processes and minutes it would take")
    parser.add_argument("--regimes", default="", help=f"those that begin with one of these: {', '.join(names)}")
    parser.add_argument("--peers", default="all", help=f"all (default), none, or some of: {','.join(peers)}")
    parser.add_argument(
        "--sides",
        default="",
        help="only sides whose name contains one of these; the commas between them without a space",
    )
    parser.add_argument("--rounds", type=int, help=f"rounds per regime (default {ROUNDS}; with --quick 2)")
    parser.add_argument("--peer-rounds", type=int, help=f"the same for other libraries (default {PEER_ROUNDS})")
    parser.add_argument("--seconds", type=float, help="length of a measured window (default: the regime's)")
    parser.add_argument("--output", type=Path, help="default: results/latest.json, with --quick results/quick.json")
    parser.add_argument(
        "--resume", action="store_true", help="keep the regimes that the output holds, measure the rest"
    )
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="FILE", help="measure nothing; the table of these runs"
    )
    parser.add_argument("--write-docs", type=Path, metavar="PAGE", help="put the result between the marks of this page")
    options = parser.parse_args()
    options.size = "tiny" if options.quick else "full"
    options.rounds = options.rounds or (2 if options.quick else ROUNDS)
    options.peer_rounds = options.peer_rounds or PEER_ROUNDS
    if not options.merge:
        options.output = options.output or RESULTS / ("quick.json" if options.quick else "latest.json")
    words = tuple(word.strip() for word in options.regimes.split(","))
    options.regimes = [name for name in names if name.startswith(words)]
    options.sides = [word for word in re.split(r",(?! )", options.sides) if word]  # names of sides hold ", "
    options.peers = {"all": peers, "none": []}.get(options.peers) or [
        p for p in options.peers.split(",") if p != "none"
    ]
    if not options.regimes:
        parser.error("no regime begins with that; there are: " + ", ".join(names))
    unknown = set(options.peers) - set(peers)
    if unknown:
        parser.error(f"not known: {', '.join(sorted(unknown))}; there are {', '.join(peers)}")
    return options


if __name__ == "__main__":
    main()
