"""What a checkpoint costs a training run: seconds of standing still, seconds of writing, bytes on the disk.

python benchmarks/checkpoint_pause.py                 a model of 25 million parameters with Adam
python benchmarks/checkpoint_pause.py --millions 100  a larger one

In turns, on the same model and disk: `Checkpointer` in the background (training stands still for the copy), without it
(training stands still for the writing), and `torch.save` of model and optimizer, with and without a sync to the disk: what people
do by hand, neither checked nor atomic. Reported are medians and the range over the rounds, and the ratio within each round.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any


def main(arguments: list[str]) -> int:
    """Measures and prints; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=25.0, help="parameters of the model, in millions")
    parser.add_argument("--rounds", type=int, default=5, help="saves of each kind")
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    options = parser.parse_args(arguments)
    import torch

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        model, optimizer = _trained(int(options.millions * 1e6))
        kinds = _kinds(pathlib.Path(folder), model, optimizer)
        rounds: dict[str, list[float]] = {name: [] for name in kinds}
        for number in range(options.rounds):
            for name in list(kinds)[:: 1 if number % 2 == 0 else -1]:
                save, wait = kinds[name]
                started = time.perf_counter()
                save()
                rounds[name].append(time.perf_counter() - started)
                wait()
        num_bytes = sum(one.nbytes for one in model.parameters()) * 3
        print(
            f"{options.millions:g} million parameters with Adam, {num_bytes / 1e6:,.0f} MB of state, {torch.get_num_threads()} threads"
        )
        by_hand = rounds["torch.save"]
        for name, seconds in rounds.items():
            ratios = sorted(one / hand for one, hand in zip(seconds, by_hand, strict=True))
            print(
                f"  {name:<28} stands still {1e3 * statistics.median(seconds):8.1f} ms "
                f"({1e3 * min(seconds):.1f} to {1e3 * max(seconds):.1f}), x{statistics.median(ratios):.3f} of torch.save"
            )
        for name, (_, wait) in kinds.items():
            if (saved := wait()) is not None:
                print(
                    f"  {name:<28} wrote {saved.num_bytes / 1e6:,.1f} MB in {saved.write_s:.2f} s, checksums included"
                )
    return 0


def _trained(num_parameters: int) -> tuple[Any, Any]:
    """A model of about that size after one step, so that its optimizer has state."""
    import torch

    width = max(8, round((num_parameters / 8) ** 0.5))
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)])
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, width)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def _kinds(folder: pathlib.Path, model: Any, optimizer: Any) -> dict[str, tuple[Callable[[], None], Callable[[], Any]]]:
    """Name to (what saves, what waits until it is on the disk and says what was written)."""
    import torch

    import headrace as hr

    kinds: dict[str, tuple[Callable[[], None], Callable[[], Any]]] = {}
    for name, background in (("Checkpointer", True), ("Checkpointer, background=False", False)):
        one = hr.Checkpointer(
            folder / name, model=model, optimizer=optimizer, every_s=None, background=background, signals=(), keep=1
        )
        kinds[name] = (one.save, lambda one=one: (one.wait(), one.saved)[1])

    def by_hand(*, syncs: bool) -> None:
        path = folder / "by-hand.pt"
        with path.open("wb") as file:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
            if syncs:
                file.flush()
                os.fsync(file.fileno())

    kinds["torch.save"] = (lambda: by_hand(syncs=False), lambda: None)
    kinds["torch.save and fsync"] = (lambda: by_hand(syncs=True), lambda: None)
    return kinds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
