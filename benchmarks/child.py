"""Measures one side once, or makes data: the program of every fresh process. Started by `run.py`, not by hand."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import sys
from pathlib import Path

from benchmarks.regime import LIMIT, Regime, Side, Work, all_regimes, make_folder

from benchmarks import meter


def main() -> None:
    """Does one thing and writes its result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["make", "prepare", "check", "measure"])
    parser.add_argument("regime")
    parser.add_argument("--side", default="")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--result", type=Path, required=True)
    options = parser.parse_args()

    regime = all_regimes()[options.regime]
    work = Work(folder=options.folder, size=regime.sizes[options.size])
    side = next((side for side in regime.sides if side.name == options.side), None)
    result = make(regime, work) if side is None else measured(options.action, side, work, regime, options.seconds)
    options.result.write_text(json.dumps(result), encoding="utf-8")


def make(regime: Regime, work: Work) -> dict[str, object]:
    """Makes the data, and beside them the notes."""

    def fill(folder: Path) -> None:
        meta = regime.make(Work(folder=folder, size=work.size))
        (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")

    make_folder(work.folder, fill)
    return {}


def measured(action: str, side: Side, work: Work, regime: Regime, seconds: float) -> dict[str, object]:
    """Returns what was measured or checked of a side, and the version of its library."""
    for name in side.imports:
        importlib.import_module(name)
    if action == "prepare":
        if side.prepare is not None:
            side.prepare(work)
        return {}
    if action == "check":
        return meter.digest(side.open(work), with_contents=side.same_bytes, labels_of=side.labels)
    return {**getattr(meter, regime.measure)(side, work, regime, seconds), "version": _version(side)}


def _version(side: Side) -> str | None:
    names = {
        LIMIT: "numpy",
        "tensorflow": "tensorflow-cpu",
        "streaming": "mosaicml-streaming",
        "dali": "nvidia-dali-cuda120",
    }
    try:
        return importlib.metadata.version(names.get(side.library, side.library))
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
