"""What the loader itself costs: headrace's against torch's, the same data set, the same batches, every sample checked once.

*In memory*: samples that cost nothing to load, the worst case for a loader, which has no work to hide behind. What is
measured there is the loader's own cost per sample. *JPEG*: photographs decoded and mirrored at random, as people do.

Each measure is one whole epoch of a new loader, shuffled, workers started and ended within it. PyTorch computes in one
thread, as it does in workers: without that, what is measured without workers is how two spinning threads share a core.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.utils.data
from benchmarks.measure import Comparison
from PIL import Image
from sklearn.datasets import load_sample_images

import headrace as hr

KINDS = {"torch DataLoader": torch.utils.data.DataLoader, "headrace DataLoader": hr.DataLoader}
BATCH_SIZE = 64


class InMemory(torch.utils.data.Dataset):
    """An image (3, 32, 32) float32 and its number, ready-made."""

    title = "3x32x32 float32 in memory"

    def __init__(self, num_samples: int) -> None:
        self.images = torch.rand(num_samples, 3, 32, 32, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.images[index], index


class Photographs(torch.utils.data.Dataset):
    """Crops (3, 256, 256) uint8 of two photographs and their number, decoded from JPEG and mirrored half the time."""

    title = "3x256x256 JPEG, decoded and mirrored"

    def __init__(self, num_samples: int) -> None:
        corners = np.random.default_rng(0).integers(0, (427 - 256, 640 - 256), size=(num_samples, 2))
        photographs = load_sample_images().images
        self.files = [_jpeg(photographs[k % 2][y : y + 256, x : x + 256]) for k, (y, x) in enumerate(corners)]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pixels = torch.from_numpy(np.array(Image.open(io.BytesIO(self.files[index])))).permute(2, 0, 1)
        return (pixels.flip(2) if torch.rand(()) < 1 / 2 else pixels).contiguous(), index


def comparisons(*, is_quick: bool) -> Iterator[Comparison]:
    """Yields what is to be measured."""
    torch.set_num_threads(1)
    scale = 4 if is_quick else 1
    for dataset in (InMemory(20_000 // scale), Photographs(2_000 // scale)):
        for num_workers in (0, 2):
            for kind in KINDS.values():
                _check(_loader(kind, dataset, num_workers), len(dataset))
            yield Comparison(
                name=f"{len(dataset):,} samples, {dataset.title}, {num_workers} workers",
                unit="samples/s",
                more_is_better=True,
                sides={side: _epoch(kind, dataset, num_workers) for side, kind in KINDS.items()},
            )


def _jpeg(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


def _loader(kind: Callable[..., object], dataset: torch.utils.data.Dataset, num_workers: int) -> object:
    return kind(dataset, batch_size=BATCH_SIZE, shuffle=True, num_workers=num_workers)


def _check(loader: object, num_samples: int) -> None:
    numbers = torch.cat([numbers for _, numbers in loader])
    if not torch.equal(numbers.sort().values, torch.arange(num_samples)):
        raise RuntimeError(f"{loader} does not deliver every sample once")


def _epoch(kind: Callable[..., object], dataset: torch.utils.data.Dataset, num_workers: int) -> Callable[[], float]:
    def measure() -> float:
        begin = time.perf_counter()
        num_samples = sum(len(numbers) for _, numbers in _loader(kind, dataset, num_workers))
        return num_samples / (time.perf_counter() - begin)

    return measure
