"""What `headrace watch` costs: a small training script with and without it, in turns, and the cost of its hooks alone.

python benchmarks/watch_overhead.py                 both measures
python benchmarks/watch_overhead.py --pairs 10      more pairs of whole scripts

Two numbers, because they answer two questions:

    hooks    processor time per batch of a loop that does nothing but take ready batches, with and without the hooks, in
             one process: the microseconds that each batch pays. Processor time, so that a busy machine changes it little
    script   wall time of the training loop of a whole script under `python` and under `headrace watch`, in pairs ABBA:
             the ratio that a user sees. On a machine that is not idle its spread is larger than the cost itself
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPT = """
import json, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(8192, 64), torch.randint(0, 10, (8192,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers={num_workers}, persistent_workers={num_workers} > 0)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    walls, cpus = [], []
    for epoch in range({epochs}):
        begun, begun_cpu, steps = time.perf_counter(), time.process_time(), 0
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
            steps += 1
        walls.append((time.perf_counter() - begun) / steps)
        cpus.append((time.process_time() - begun_cpu) / steps)
    print(json.dumps({{"wall": min(walls[1:]), "cpu": min(cpus[1:])}}))

if __name__ == "__main__":
    main()
"""
ROUNDS = 9
NUM_BATCHES = 5_000
BATCH = 64


def main(arguments: list[str]) -> int:
    """Measures and prints; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6, help="pairs of whole scripts")
    parser.add_argument("--epochs", type=int, default=6, help="epochs of each script, the first one not counted")
    options = parser.parse_args(arguments)
    hooks()
    for num_workers in (0, 2):
        scripts(options.pairs, options.epochs, num_workers)
    return 0


def hooks() -> None:
    """Prints the processor time of a batch with and without the hooks, in turns."""
    from headrace.doctor.watch.loaders import LoaderObserver
    from headrace.doctor.watch.timeline import Timeline

    for batch_size in (1, BATCH):
        loader = _ready_batches(batch_size)
        _cpu_per_batch(loader)
        plain, watched = [], []
        for _ in range(ROUNDS):
            plain.append(_cpu_per_batch(loader))
            observer = LoaderObserver(Timeline())
            observer.install()
            try:
                watched.append(_cpu_per_batch(loader))
            finally:
                observer.uninstall()
        cost = statistics.median(watched) - statistics.median(plain)
        print(
            f"hooks   batches of {batch_size:>3}: {1e6 * statistics.median(plain):7.1f} us without, "
            f"{1e6 * statistics.median(watched):7.1f} us with: {1e6 * cost:5.1f} us for a batch"
        )


def _ready_batches(batch_size: int) -> Any:
    """A torch loader whose data set and collate do next to nothing."""
    from torch.utils.data import DataLoader

    return DataLoader(range(batch_size * NUM_BATCHES), batch_size=batch_size, collate_fn=len)


def _cpu_per_batch(loader: Any) -> float:
    begun_s = time.process_time()
    num_batches = sum(1 for _ in loader)
    return (time.process_time() - begun_s) / num_batches


def scripts(num_pairs: int, epochs: int, num_workers: int) -> None:
    """Prints the ratio of a training loop's time under `headrace watch` to that under `python`."""
    with tempfile.TemporaryDirectory(prefix="headrace-benchmark-") as folder:
        path = Path(folder) / "train.py"
        path.write_text(SCRIPT.format(epochs=epochs, num_workers=num_workers))
        plain = [sys.executable, str(path)]
        watched = [sys.executable, "-m", "headrace", "watch", "--quiet", "--exit-zero", str(path)]
        pairs = []
        for number in range(num_pairs):
            order = (plain, watched) if number % 2 == 0 else (watched, plain)
            first, second = (_measured(command) for command in order)
            pairs.append((first, second) if number % 2 == 0 else (second, first))
    for clock in ("wall", "cpu"):
        ratios = sorted(with_[clock] / without[clock] for without, with_ in pairs)
        before = statistics.median(without[clock] for without, _ in pairs)
        added = statistics.median(with_[clock] - without[clock] for without, with_ in pairs)
        print(
            f"script  {num_workers} workers, {clock} time: {1e6 * before:7.0f} us a step without, {1e6 * added:+6.0f} us with; "
            f"ratio {statistics.median(ratios):.4f} ({ratios[0]:.4f} to {ratios[-1]:.4f}, {num_pairs} pairs)"
        )


def _measured(command: list[str]) -> dict[str, float]:
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
