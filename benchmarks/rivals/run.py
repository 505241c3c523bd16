"""Runs TraceML and loadtune on the loops of tests/bottlenecks, as their users would, and keeps what they say.

    python -m venv VENV && VENV/bin/pip install -r benchmarks/rivals/requirements.txt
    python benchmarks/rivals/run.py --venv VENV [--only NAME ...] [--tool traceml|loadtune]
    python benchmarks/rivals/table.py

One run at a time. Every answer is kept in benchmarks/results/rivals.json at once, under its case and tool.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "rivals.json"
LIMIT_S = 240
TOOLS = ("traceml", "loadtune")
sys.path.insert(0, str(ROOT / "tests" / "bottlenecks"))
from truth import Case, cases, noise  # noqa: E402

SECONDS = 8
"""Of training under TraceML; at least 25 steps: it calls nothing critical below 20."""

TRACEML = f"""
import time
import torch
import traceml_ai as traceml
import CASE

if __name__ == "__main__":
    traceml.init(mode="auto")
    loader = CASE.make_loader()
    train_step = CASE.make_step() if "TRAIN" == "make_step" else CASE.TRAIN
    held = dict(zip(train_step.__code__.co_freevars, [cell.cell_contents for cell in train_step.__closure__ or ()]))
    model = held.get("model") or torch.nn.Identity()
    steps, end = 0, time.monotonic() + {SECONDS}
    while time.monotonic() < end or steps < 25:
        for batch in loader:
            with traceml.trace_step(model):
                train_step(batch)
            steps += 1
            if time.monotonic() > end and steps >= 25:
                break
"""

LOADTUNE = """
import torch
from loadtune.workload import Workload

import CASE

loader = CASE.make_loader()


def train_step(model, optimizer, batch, device):
    step(batch)
    return torch.zeros(())


step = CASE.make_step() if "TRAIN" == "make_step" else CASE.TRAIN


def get_workload():
    return Workload(
        name="CASE",
        make_dataset=lambda: loader.dataset,
        make_model=lambda: torch.nn.Linear(1, 1),
        make_optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        train_step=train_step,
        default_batch_size=loader.batch_size or 1,
        collate_fn=loader.collate_fn,
    )
"""

SETTINGS = """
import json
import CASE
loader = CASE.make_loader()
print(json.dumps([getattr(loader, "num_workers", 0), getattr(loader, "batch_size", None)]))
"""


def fill(text: str, case: Case) -> str:
    """Puts the case's names into a script."""
    return text.replace("CASE", case.name).replace("TRAIN", case.train)


def traceml(case: Case, venv: pathlib.Path, folder: pathlib.Path) -> dict[str, Any]:
    """Returns what its summary says."""
    (folder / "train.py").write_text(fill(TRACEML, case), encoding="utf-8")
    done = typed([venv / "bin" / "traceml", "run", "train.py", "--run-name", "run"], folder)
    summaries = list(folder.glob("logs/**/final_summary.json"))
    if not summaries:
        return {"error": last_lines(done)}
    said = json.loads(summaries[0].read_bytes())["primary_diagnosis"]
    return {key: said.get(key) for key in ("status", "severity", "summary", "action")}


def loadtune(case: Case, venv: pathlib.Path, folder: pathlib.Path) -> dict[str, Any]:
    """Returns its diagnosis, the best setting it found, and how much it promises."""
    (folder / "workload.py").write_text(fill(LOADTUNE, case), encoding="utf-8")
    asked = typed([venv / "bin" / "python", "-c", fill(SETTINGS, case)], folder)
    if asked.returncode:
        return {"error": last_lines(asked)}
    workers, batch_size = json.loads(asked.stdout.splitlines()[-1])
    command = ["tune", "workload.py", "--workers", str(workers), "--steps", "40", "--warmup", "5", "--max-trials", "3"]
    command += ["--repeats", "1", "--save-raw", "raw.json"] + (["--batch-size", str(batch_size)] if batch_size else [])
    done = typed([venv / "bin" / "loadtune", *command], folder)
    if not (folder / "raw.json").is_file():
        return {"error": last_lines(done)}
    raw = json.loads((folder / "raw.json").read_bytes())
    best = [line for line in done.stdout.splitlines() if "best overall" in line]
    return {
        "narrative": raw["narrative"],
        "wait": raw["baseline"]["data_wait_frac"],
        "baseline": raw["baseline"]["knobs"],
        "best": best[-1].partition("best overall: ")[2] if best else "",
        "trials": [
            {"knobs": trial["knobs"], "throughput": (trial["result"] or {}).get("throughput")}
            for trial in raw["trials"]
        ],
    }


def typed(command: list[Any], folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Runs one command in the case's folder."""
    env = {**os.environ, "TMPDIR": str(folder)}
    try:
        return subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no end within {LIMIT_S} s")


def last_lines(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the end of what was printed."""
    lines = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "no end" in line]
    return (telling or lines or ["nothing was printed"])[-1][:300]


def main() -> int:
    """Asks the tools about the cases asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tool", choices=TOOLS)
    asked = parser.parse_args()
    for case in cases(asked.only):
        if case.missing():
            continue
        for tool in [asked.tool] if asked.tool else TOOLS:
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="rivals-", ignore_cleanup_errors=True) as place, noise(case.noise):
                folder = pathlib.Path(place)
                (folder / case.file).write_text(case.text, encoding="utf-8")
                said = {"traceml": traceml, "loadtune": loadtune}[tool](case, asked.venv.absolute(), folder)
            said["wall_s"] = round(time.monotonic() - started, 1)
            kept = json.loads(RESULTS.read_bytes()) if RESULTS.is_file() else {}
            kept.setdefault(case.name, {})[tool] = said
            RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            print(f"{case.name:<18}{tool:<10}{said['wall_s']:>6.0f} s  {json.dumps(said)[:200]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
