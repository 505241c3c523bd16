"""Runs the benchmarks: a table to read, and every value as JSON.

    python -m benchmarks.run [--quick] [--rounds 9] [--only order] [--output benchmarks/results/latest.json]

Run from the root of a checkout, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import sys
from pathlib import Path

from benchmarks import loader, measure, order

BENCHMARKS = {"order": order, "loader": loader}


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 rounds and the small sizes only: to see that it runs")
    parser.add_argument("--rounds", type=int, default=9, help="rounds per comparison (default 9)")
    parser.add_argument("--only", choices=BENCHMARKS, help="one benchmark instead of all")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "latest.json")
    options = parser.parse_args()

    machine = measure.machine()
    results = []
    for name, benchmark in BENCHMARKS.items():
        if options.only in {None, name}:
            for comparison in benchmark.comparisons(is_quick=options.quick):
                print(f"measuring: {comparison.name}", file=sys.stderr, flush=True)
                results.append(measure.run(comparison, 3 if options.quick else options.rounds))
    versions = " ".join(f"{name} {version}" for name, version in machine["versions"].items())
    print(f"{machine['processor']}, {machine['usable_cores']} usable cores, Python {machine['python']}, {versions}\n")
    print(measure.table(results))

    options.output.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "created": dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.run", *sys.argv[1:]]),
        "machine": machine,
        "results": [dataclasses.asdict(result) for result in results],
    }
    options.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"\nevery value: {options.output}")


if __name__ == "__main__":
    main()
