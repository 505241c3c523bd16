"""Writes benchmarks/results/rivals.md: what each rival said of each loop that it was asked about, beside the truth.

How an answer becomes a cause, in favour of the rival wherever it is not clear:

    TraceML    INPUT-BOUND counts as every cause that its one line of advice (workers, prefetch, storage) mends: read,
               decode, transform, sample, collate, lock, burst, tail; H2D counts as transfer; any other verdict: healthy,
               also "insufficient step-time data", which it says where it sees no model (loops that call several modules or none).
    loadtune   input-bound, or a data setting sold as 10 % faster or more: limited; else healthy. The cause is what mends it:
               more workers, or "the preprocessing itself is the limit": read, decode, transform, sample, collate, lock;
               prefetch: burst, tail; no workers: needless workers, handover; a cap on threads: oversubscription,
               interference; workers that persist, where they did not: epoch start.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "tests" / "bottlenecks"))
from truth import Case, cases  # noqa: E402

WORK = {"read", "decode", "transform", "sample", "collate", "lock"}
AHEAD = {"burst", "tail"}
SOLD = 1.10
MEANS = {"workers": WORK, "prefetch": AHEAD, "none": {"needless workers", "handover"}} | {
    "threads": {"oversubscription", "interference"}
}


def traceml(said: dict[str, Any]) -> tuple[str, set[str]]:
    """Returns verdict and the causes that its answer may stand for."""
    status = str(said["status"]).upper()
    if "INPUT" in status:
        return "limited", WORK | AHEAD
    return ("limited", {"transfer"}) if "H2D" in status or "TRANSFER" in status else ("healthy", set())


def loadtune(said: dict[str, Any]) -> tuple[str, set[str]]:
    """Returns verdict and the causes that its answer may stand for."""
    causes: set[str] = set()
    best = said["best"]
    sold = re.search(r"([\d.]+)x baseline", best)
    is_sold = bool(sold) and float(sold[1]) >= SOLD
    if is_sold:
        before = said["baseline"]["num_workers"]
        workers = re.search(r"workers=(\d+)", best)
        after = int(workers[1]) if workers else before
        causes |= MEANS["workers"] if after > before else MEANS["none"] if after < before else set()
        causes |= MEANS["prefetch"] if "prefetch" in best else set()
        causes |= MEANS["threads"] if "threads" in best else set()
        causes |= {"epoch start"} if "persistent" in best and not said["baseline"]["persistent_workers"] else set()
    if "preprocessing itself" in said["narrative"]:
        causes |= MEANS["workers"]
    is_limited = "input-bound" in said["narrative"] or (is_sold and bool(causes))
    return ("limited" if is_limited else "healthy"), causes


TOOLS = {"traceml": traceml, "loadtune": loadtune}


def cell(case: Case, tool: str, said: dict[str, Any] | None) -> tuple[str, bool | None, bool | None]:
    """Returns what stands in the table, whether the verdict is right, and whether the cause is, too."""
    if said is None:
        return "not asked", None, None
    if "error" in said:
        return f"failed: `{said['error'][:70]}`", False, False
    verdict, causes = TOOLS[tool](said)
    is_right = verdict == case.verdict
    names_it = is_right and (case.verdict == "healthy" or case.cause[0] in causes)
    words = said["status"] if tool == "traceml" else loadtune_words(said)
    return f"{words} ({'right' if names_it else 'verdict only' if is_right else 'wrong'})", is_right, names_it


def loadtune_words(said: dict[str, Any]) -> str:
    """Its diagnosis and the setting it recommends."""
    bold = re.findall(r"\*\*(.+?)\*\*", said["narrative"])
    return "; ".join([*bold[:2], *([f"best `{said['best']}`"] if said["best"] else [])]) or "mildly contended"


def table(kept: dict[str, Any]) -> str:
    """Returns the table, and a line of totals per tool."""
    lines = ["| loop | truth | TraceML 0.5.0 | loadtune 0.3.0 |", "|---|---|---|---|"]
    counts = {tool: [0, 0, 0, 0, 0] for tool in TOOLS}
    for case in cases():
        if case.name not in kept:
            continue
        cells = []
        for tool in TOOLS:
            text, is_right, names_it = cell(case, tool, kept[case.name].get(tool))
            cells.append(text)
            if is_right is None:
                continue
            count = counts[tool]
            count[0] += 1
            count[1] += is_right
            count[2] += bool(names_it)
            count[3] += case.verdict == "healthy" and not is_right
            count[4] += case.verdict == "healthy"
        truth = "healthy" if case.verdict == "healthy" else f"limited: {case.cause[0]}"
        lines.append(f"| {case.name} | {truth} | {cells[0]} | {cells[1]} |")
    lines += ["", "| | asked | verdict right | and the cause | wrong on healthy |", "|---|---|---|---|---|"]
    for tool, (asked, right, named, alarms, healthy) in counts.items():
        lines.append(f"| {tool} | {asked} | {right} | {named} | {alarms} of {healthy} |")
    return "\n".join(lines)


PAGE = """# Rivals on the same exam

What TraceML 0.5.0 and loadtune 0.3.0 (torch 2.13.0, CPU, Python 3.11, 2 cores) say of loops of `tests/bottlenecks` whose
limit is known. Each was run as its users would run it:

```
python -m venv VENV && VENV/bin/pip install -r benchmarks/rivals/requirements.txt
python benchmarks/rivals/run.py --venv VENV    # all loops; --only NAME for some
python benchmarks/rivals/table.py              # this page

traceml run train.py                           # the loop under traceml.init(mode="auto") and trace_step, {seconds} s or more
loadtune tune workload.py --workers N --batch-size B --steps 40 --warmup 5 --max-trials 3 --repeats 1
```

{note}

{table}

How an answer became a cause, in favour of the rival wherever it is not clear: the top of `benchmarks/rivals/table.py`.
Every answer as it was given: `rivals.json`.

What loadtune cannot be given of these loops: worker start functions (mirrors, lexicon, audio), iterable data sets
(archive_shards, stream), batch samplers (housing), loaders that are not torch's (ahead_thread), start methods (few_shot) and
prefetch_factor (documents, detection, volumes_ahead): it makes a loader of its own from the data set.
"""


def main() -> int:
    """Writes the page."""
    kept = json.loads((RESULTS / "rivals.json").read_bytes())
    asked = sum(name in kept for name in (case.name for case in cases()))
    note = (
        f"{asked} of {len(cases())} loops were asked about, while other programs used both cores: times, and what loadtune "
        "says of CPU use, rest on that. Verdicts of healthy loops are the ones to run again on a quiet machine before "
        "anything is quoted."
    )
    page = PAGE.format(seconds=8, note=note, table=table(kept))
    (RESULTS / "rivals.md").write_text(page, encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
