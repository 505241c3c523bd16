"""Runs the benchmarks: one table to read, and every value as JSON.

python -m benchmarks.run [--quick] [--regimes rows,jpeg] [--peers none] [--rounds 5] [--output FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.regime import OWN_ENVIRONMENT, all_regimes
from benchmarks.rounds import compare
from benchmarks.table import table

from benchmarks import environments, measure, order

SCHEMA = 1
ORDER = "order"
"""Not a loader's work but arithmetic, compared within this process: see `order.py`."""

RESULTS = Path(__file__).parent / "results"
SECONDS = 1.5
"""Length of a measured window; with the start of a process and its warming up, a value takes about four."""


def main() -> None:
    """Measures, prints, writes."""
    options = _options()
    regimes = all_regimes()
    libraries = {*OWN_ENVIRONMENT, *options.peers}
    begin_s = time.monotonic()
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "created": dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", "-m", "benchmarks.run", *sys.argv[1:]]),
        "machine": measure.machine(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "regimes": [],
    }
    for name in (name for name in options.regimes if name != ORDER):
        regime = regimes[name]
        sides = [side for side in regime.sides if side.library in libraries]
        sides = [side for side in sides if not options.sides or any(text in side.name for text in options.sides)]
        record["regimes"].append(
            compare(
                regime,
                sides,
                num_rounds=options.rounds,
                size=options.size,
                seconds=options.seconds,
                say=lambda text: print(text, file=sys.stderr, flush=True),
            )
        )
        record["took_s"] = round(time.monotonic() - begin_s)
        _write(options.output, record)
    orders = []
    if ORDER in options.regimes:
        orders = [measure.run(each, options.rounds) for each in order.comparisons(is_quick=options.quick)]
        record["order"] = [dataclasses.asdict(result) for result in orders]
        _write(options.output, record)
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    print(f"{machine['processor']}, {machine['usable_cores']} usable cores, Python {machine['python']}, {versions};")
    print(f"medians of {options.rounds} interleaved rounds, ratios are medians of the rounds' ratios\n")
    print("\n\n".join(filter(None, (record["regimes"] and table(record["regimes"]), orders and measure.table(orders)))))
    print(f"\nevery value: {options.output}")


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    names, peers = [*all_regimes(), ORDER], environments.peers()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, 2 rounds: to see that everything runs")
    parser.add_argument("--regimes", default="", help=f"those that begin with one of these: {', '.join(names)}")
    parser.add_argument("--peers", default="all", help=f"all (default), none, or some of: {','.join(peers)}")
    parser.add_argument("--sides", default="", help="only sides whose name contains one of these words")
    parser.add_argument("--rounds", type=int, help="rounds per regime (default 5; with --quick 2)")
    parser.add_argument("--seconds", type=float, help=f"length of a measured window (default {SECONDS})")
    parser.add_argument("--output", type=Path, help="default: results/latest.json, with --quick results/quick.json")
    options = parser.parse_args()
    options.size = "tiny" if options.quick else "full"
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.3 if options.quick else SECONDS)
    options.output = options.output or RESULTS / ("quick.json" if options.quick else "latest.json")
    words = tuple(word.strip() for word in options.regimes.split(","))
    options.regimes = [name for name in names if name.startswith(words)]
    options.sides = [word.strip() for word in options.sides.split(",") if word.strip()]
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
