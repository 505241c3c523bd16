"""What `headrace measure` costs the loader that it times: a walk with and without it, in turns.

python benchmarks/measure_overhead.py               both measures
python benchmarks/measure_overhead.py --rounds 15   more walks of each

    bare     processor time per batch of a loader that does next to nothing, walked by a plain loop, by a timed round, and by
             an accounted round, in which the stages are told apart: the microseconds that each batch, and each of its
             samples, pays
    photos   wall time of an epoch over small JPEGs, in the same three ways, with and without workers: the ratio that matters

Every rate and wait in a report comes from timed rounds; accounted rounds only say how the time divides.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

NUM_BATCHES = 2_000
BATCH = 32
NUM_PHOTOS, SIDE = 3200, 256


def main(arguments: list[str]) -> int:
    """Measures and prints; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="walks of each kind")
    options = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    for batch_size in (1, BATCH):
        bare(batch_size, options.rounds)
    for num_workers in (0, 2):
        photos(num_workers, options.rounds)
    return 0


def bare(batch_size: int, num_rounds: int) -> None:
    """Prints the processor time of a batch."""
    from torch.utils.data import DataLoader

    loader = DataLoader(range(batch_size * NUM_BATCHES), batch_size=batch_size, collate_fn=len)
    walks = _in_turns(loader, num_rounds)
    plain, timed, accounted = (1e6 * statistics.median(cpu_s for _, cpu_s in each) / NUM_BATCHES for each in walks)
    per_sample = (accounted - timed) / batch_size
    print(
        f"bare    batches of {batch_size:>2}: {plain:6.1f} us in a plain loop; {timed - plain:+5.1f} us a batch where it is timed; "
        f"{accounted - plain:+6.1f} us where stages are told apart, {per_sample:.1f} us a sample"
    )


def photos(num_workers: int, num_rounds: int) -> None:
    """Prints the ratios of the wall time from the first request to the end."""
    from torch.utils.data import DataLoader

    loader = DataLoader(_Photos(), batch_size=BATCH, num_workers=num_workers)
    plain, timed, accounted = _in_turns(loader, num_rounds)
    told = []
    for name, walks in (("timed", timed), ("stages told apart", accounted)):
        ratios = sorted(with_[0] / without[0] for without, with_ in zip(plain, walks, strict=True))
        told.append(f"{name} x{statistics.median(ratios):.4f} ({ratios[0]:.4f} to {ratios[-1]:.4f})")
    each_ms = 1e3 * statistics.median(wall_s for wall_s, _ in plain) / NUM_PHOTOS
    print(
        f"photos  {num_workers} workers, {each_ms:.2f} ms a photo in a plain loop: {'; '.join(told)}, {num_rounds} rounds"
    )


Walk = tuple[float, float]
"""Wall and processor seconds of an epoch, from the first request to the end."""


def _in_turns(loader: Any, num_rounds: int) -> tuple[list[Walk], list[Walk], list[Walk]]:
    """Epochs: plain, timed, accounted; one after the other, forwards and backwards."""
    kinds = (_plain, _timed, _accounted)
    took: dict[Callable[[Any], Walk], list[Walk]] = {kind: [] for kind in kinds}
    for kind in kinds:  # imports, pages, and what is compiled on first use
        kind(loader)
    for number in range(num_rounds):
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            took[kind].append(kind(loader))
    return took[_plain], took[_timed], took[_accounted]


def _plain(loader: Any) -> Walk:
    from headrace.doctor.timing.consumer import touch

    batches = iter(loader)
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    for batch in batches:
        touch(batch)
    return time.monotonic() - began_s, time.process_time() - began_cpu_s


def _timed(loader: Any) -> Walk:
    return _walk(loader, accounts=False)


def _accounted(loader: Any) -> Walk:
    return _walk(loader, accounts=True)


def _walk(loader: Any, *, accounts: bool) -> Walk:
    """One epoch, as a round of `measure` walks it, in this process."""
    from headrace.doctor.lab.bench import Bench
    from headrace.doctor.lab.recorder import FlightRecorder
    from headrace.doctor.subject import Subject
    from headrace.doctor.timing.runs import TimedRun

    recorder = FlightRecorder.create()
    with tempfile.TemporaryDirectory(prefix="headrace-benchmark-") as folder:
        wish = TimedRun(kind="L", num_epochs=1, most_s=600.0, accounts=accounts, folder=folder)
        (found,) = wish.run(Subject(loader), Bench(recorder))
    recorder.close()
    return found.steps.end_s - found.steps.asked_s[0], found.consumer_cpu_s


class _Photos:
    """JPEGs in memory, decoded to arrays."""

    def __init__(self) -> None:
        import numpy as np
        from PIL import Image

        rng, self.files = np.random.default_rng(0), []
        for _ in range(8):
            coarse = rng.integers(0, 256, (SIDE // 16, SIDE // 16, 3), dtype=np.uint8)
            file = io.BytesIO()
            Image.fromarray(coarse).resize((SIDE, SIDE)).save(file, "JPEG", quality=90)
            self.files.append(file.getvalue())

    def __len__(self) -> int:
        return NUM_PHOTOS

    def __getitem__(self, row: int) -> Any:
        import torch
        from PIL import Image

        photo = Image.open(io.BytesIO(self.files[row % len(self.files)])).convert("RGB")
        return torch.frombuffer(bytearray(photo.tobytes()), dtype=torch.uint8)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
