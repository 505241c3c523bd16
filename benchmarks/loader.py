"""What the loader itself costs: headrace's against torch's on the same data set in memory, where reading costs nothing.

The worst case for a loader: there is no work to hide behind. Each measure is one whole epoch of a new loader, workers
started and ended within it, shuffled, in the same batches. Both sides deliver the same samples; a check comes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
import torch.utils.data
from measure import Comparison

import headrace as hr

NUM_SAMPLES = 20_000
SHAPE = (3, 32, 32)
BATCH_SIZE = 64


class InMemory(torch.utils.data.Dataset):
    """Samples as most data sets return them: an image and a label."""

    def __init__(self) -> None:
        self.images = torch.rand(NUM_SAMPLES, *SHAPE, generator=torch.Generator().manual_seed(0))
        self.labels = torch.arange(NUM_SAMPLES)

    def __len__(self) -> int:
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.images[index], int(self.labels[index])


def comparisons(*, is_quick: bool) -> Iterator[Comparison]:
    """Yields what is to be measured."""
    dataset = InMemory()
    for num_workers in (0, 2):
        kinds = {"torch DataLoader": torch.utils.data.DataLoader, "headrace DataLoader": hr.DataLoader}
        for kind in kinds.values():
            _check(kind(dataset, batch_size=BATCH_SIZE, shuffle=True, num_workers=num_workers))
        yield Comparison(
            name=f"{NUM_SAMPLES:,} samples of {'x'.join(map(str, SHAPE))} float32 in memory, {num_workers} workers",
            unit="samples/s",
            more_is_better=True,
            sides={side: _epoch(kind, dataset, num_workers) for side, kind in kinds.items()},
        )
    del is_quick  # the same either way: an epoch takes about a second


def _check(loader: object) -> None:
    labels = torch.cat([labels for _, labels in loader])
    if not torch.equal(labels.sort().values, torch.arange(NUM_SAMPLES)):
        raise RuntimeError(f"{loader} does not deliver every sample once")


def _epoch(kind: Callable[..., object], dataset: InMemory, num_workers: int) -> Callable[[], float]:
    def measure() -> float:
        begin = time.perf_counter()
        num_samples = 0
        for images, _ in kind(dataset, batch_size=BATCH_SIZE, shuffle=True, num_workers=num_workers):
            num_samples += len(images)
        return num_samples / (time.perf_counter() - begin)

    return measure
