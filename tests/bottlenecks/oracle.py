"""Whether truth.toml is true, found without headrace: each loop as it is, with the suspect taken away, and the step alone.

Each is timed in a fork of its own, in turns. Times are ms per step; the least of the rounds counts, because what else
runs on the machine can only add to it.

    loss        as it is / step alone - 1: what all work on data could win
    other       limited: the loop with the suspect taken away; healthy: the loader alone
    left        loss with the suspect taken away
    limited     is confirmed when the loss is 15 % or more, and at most a quarter of it is left without the suspect
    healthy     is confirmed by the clock when the waits and what the step takes longer beside the loader are below 1 %
                of the step. On a busy machine no clock can show that; then by CPU time: asking for a batch costs the
                loop's thread less than 1 % of the step, and the loader alone is twice as fast as the step or faster

`python tests/bottlenecks/oracle.py [--rounds N] [--seconds S] [NAME ...]`
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time

from truth import Case, cases, noise

MOST_ROUNDS = 6
"""Of a case that is not confirmed after the rounds asked for: noise is one-sided, and the least converges."""
PERIOD = 20
"""Steps of uneven length repeat after so many."""
KEPT = 8
"""Batches on which the step alone runs: their lengths differ."""
LIMIT_S = 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds per step."""

    mean_s: float
    median_s: float
    wait_s: float = 0.0
    cpu_s: float = 0.0
    """Of the step alone, over its threads."""
    next_cpu_s: float = 0.0
    """What the loop's thread computes to get a batch."""


def load(folder: pathlib.Path, name: str):
    """Executes the file as the module that workers find by its name."""
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def step_alone(loader, step, seconds):
    """Times the step on batches that are kept."""
    batches = []
    for batch in loader:
        batches.append(batch)
        if len(batches) == KEPT:
            break
    for number in range(PERIOD):
        step(batches[number % len(batches)])
    steps, taken, began, computed = 0, [], time.perf_counter(), time.process_time()
    while steps % PERIOD or time.perf_counter() - began < seconds:
        before = time.perf_counter()
        step(batches[steps % len(batches)])
        taken.append(time.perf_counter() - before)
        steps += 1
    mean_s, cpu_s = (time.perf_counter() - began) / steps, (time.process_time() - computed) / steps
    return Times(mean_s=mean_s, median_s=statistics.median(taken), cpu_s=cpu_s / _threads())


def loader_alone(loader, step, seconds):
    """Times batches that nobody uses."""
    return loop(loader, lambda batch: None, seconds)


def loop(loader, step, seconds):
    """Times the loop; whole epochs where they are short, whole periods of uneven steps where they are not."""
    ahead = getattr(loader, "num_workers", 0) * (getattr(loader, "prefetch_factor", None) or 0)
    begins_at, epoch, done = None, 0, 0
    steps, waited, next_cpu, taken, began = 0, 0.0, 0.0, [], 0.0
    hard_limit = time.perf_counter() + LIMIT_S
    asked, computed = time.perf_counter(), time.thread_time()
    while True:
        place = 0
        for batch in loader:
            got = time.perf_counter()
            if begins_at is not None:
                waited += got - asked
                next_cpu += time.thread_time() - computed
            step(batch)
            asked, computed = time.perf_counter(), time.thread_time()
            done += 1
            if begins_at is not None:
                steps += 1
                taken.append(asked - got)
                is_whole = place == begins_at if epoch else steps % PERIOD == 0
                if (is_whole and asked - began >= seconds) or asked > hard_limit:
                    mean_s, median_s = (asked - began) / steps, statistics.median(taken)
                    return Times(mean_s=mean_s, wait_s=waited / steps, median_s=median_s, next_cpu_s=next_cpu / steps)
            elif done >= min(ahead + 4, _length(loader)):
                begins_at, began = place, asked
            place += 1
        epoch += 1


def _threads():
    import torch

    return torch.get_num_threads()


def _length(loader):
    try:
        return len(loader)
    except TypeError:
        return 1 << 30


def run_child(pipe, folder, name, train, how, seconds):
    tempfile.tempdir = str(folder)
    module = load(folder, name)
    loader = module.make_loader()
    step = module.make_step() if train == "make_step" else getattr(module, train)
    pipe.send(how(loader, step, seconds))


def timed(text, case: Case, how, seconds: float):
    """Runs one timing in a fork, in a folder that is removed when all its processes are gone."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    with tempfile.TemporaryDirectory(prefix="oracle-") as place:
        folder = pathlib.Path(place)
        (folder / case.file).write_text(text, encoding="utf-8")
        process = fork.Process(target=run_child, args=(theirs, folder, case.name, case.train, how, seconds))
        process.start()
        theirs.close()
        try:
            return ours.recv()
        finally:
            process.join()


def examine(case: Case, rounds: int, seconds: float):
    """Returns the row of the table."""
    as_it_is, without, alone, supply = [], [], [], []
    row = {}
    with noise(case.noise):
        for number in range(max(rounds, MOST_ROUNDS) if rounds > 1 else 1):
            as_it_is.append(timed(case.text, case, loop, seconds))
            alone.append(timed(case.text, case, step_alone, seconds))
            if case.without:
                without.append(timed(case.text_without, case, loop, seconds))
            else:
                supply.append(timed(case.text, case, loader_alone, seconds))
            row = judged(case, as_it_is, without, alone, supply)
            if number + 1 >= rounds and row["confirmed"]:
                break
    return row


def least(times, name):
    return min(getattr(one, name) for one in times)


def judged(case, as_it_is, without, alone, supply):
    step_s, loop_s, wait_s = least(alone, "mean_s"), least(as_it_is, "mean_s"), least(as_it_is, "wait_s")
    slower = least(as_it_is, "median_s") / least(alone, "median_s") - 1
    loss = loop_s / step_s - 1
    other = least(without or supply, "mean_s")
    left = other / step_s - 1 if without else None
    how = ""
    if case.verdict == "limited":
        how = "clock" if loss >= 0.15 and left is not None and left <= loss / 4 else ""
    elif wait_s / step_s + max(slower, 0) < 0.01:
        how = "clock"
    else:
        computes = least(alone, "cpu_s") > step_s / 2
        quiet_s = least(alone, "cpu_s") if computes else least(alone, "median_s")
        if least(as_it_is, "next_cpu_s") < 0.01 * quiet_s and other < quiet_s / 2:
            how = "CPU"
    return {
        "case": case.name, "truth": case.cause[0] if case.verdict == "limited" else "healthy", "rounds": len(alone),
        "step_ms": 1e3 * step_s, "loop_ms": 1e3 * loop_s, "wait_ms": 1e3 * wait_s, "other_ms": 1e3 * other,
        "next_cpu_ms": 1e3 * least(as_it_is, "next_cpu_s"), "slower": slower, "loss": loss, "left": left, "confirmed": how,
    }  # fmt: skip


HEAD = (
    f"{'case':<18}{'truth':<18}{'step':>8}{'loop':>8}{'waits':>8}{'next CPU':>9}{'other':>8}{'slower':>8}{'loss':>9}{'left':>7}"
    "  rounds, by"
)


def line(row):
    left = "-" if row["left"] is None else f"{row['left']:.0%}"
    return (
        f"{row['case']:<18}{row['truth']:<18}{row['step_ms']:>8.1f}{row['loop_ms']:>8.1f}{row['wait_ms']:>8.2f}"
        f"{row['next_cpu_ms']:>9.2f}{row['other_ms']:>8.1f}{row['slower']:>8.1%}{row['loss']:>9.1%}{left:>7}"
        f"  {row['rounds']} {row['confirmed'] or 'NOT CONFIRMED'}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", help="beginnings of case names")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each timing")
    asked = parser.parse_args()
    import torch  # noqa: F401  here, so that every fork has it

    print(HEAD, flush=True)
    status = 0
    for case in cases(asked.only):
        if (reason := case.missing()) is not None:
            print(f"{case.name:<18}left out: {reason}", flush=True)
            continue
        row = examine(case, asked.rounds, asked.seconds)
        print(line(row), flush=True)
        status |= not row["confirmed"]
    return status


if __name__ == "__main__":
    sys.exit(main())
