"""Stops a training run in the middle of an epoch, resumes it with another worker count, and proves that nothing moved.

The proof is a second pass over the data by a loader that was never interrupted and has no workers: the same ids, in
the same order, with the same pixels after augmentation.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from headrace.cli.demo.pipeline import Batch, training_loader
from headrace.cli.demo.training import EPOCHS, Training, one_thread
from headrace.engine.loader import DataLoader
from headrace.errors import SampleId

__all__ = ["Delivered", "Interrupted", "train_interrupted", "uninterrupted"]

STOP_EPOCH = 6
"""Half of the twelve."""
WORKERS_BEFORE, WORKERS_AFTER, WORKERS_REFERENCE = 2, 1, 0

Bar = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""Passes the items on and shows how many of how many are done."""


@dataclasses.dataclass
class Delivered:
    """What a loader handed over, in that order."""

    ids: list[tuple[int, SampleId]] = dataclasses.field(default_factory=list)
    """(epoch, sample id) of each sample."""
    pixels: int = 0
    """CRC-32 over the pixels of all batches."""

    def add(self, loader: DataLoader[Batch], batch: Batch) -> None:
        """Books the batch that the loader handed over last."""
        self.ids += [(loader.last.epoch, sample_id) for sample_id in loader.last.sample_ids]
        self.pixels = zlib.crc32(batch["image"].numpy().tobytes(), self.pixels)

    @property
    def order_hash(self) -> str:
        """Twelve hexadecimal digits that change with any id, and with the order."""
        text = "\n".join(f"{epoch} {sample_id}" for epoch, sample_id in self.ids)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def first_difference(self, other: Delivered) -> str | None:
        """Returns where two records part, in words; None if they are the same."""
        for place, (mine, theirs) in enumerate(zip(self.ids, other.ids, strict=False)):
            if mine != theirs:
                return f"sample {place:,}: epoch {mine[0]}, {mine[1]} against epoch {theirs[0]}, {theirs[1]}"
        if len(self.ids) != len(other.ids):
            return f"{len(self.ids):,} samples against {len(other.ids):,}"
        return None if self.pixels == other.pixels else "the same ids in the same order, but not the same pixels"


@dataclasses.dataclass
class Interrupted:
    """A training run that was stopped once and went to its end."""

    training: Training
    delivered: Delivered
    num_before: int
    """Samples delivered before the stop."""
    state_path: pathlib.Path
    """The loader's state at the stop."""
    model_path: pathlib.Path
    """Model, optimizer and schedule at the stop."""


@one_thread()
def train_interrupted(root: pathlib.Path, seed: int, bar: Bar) -> Interrupted:
    """Trains until the middle of an epoch, saves, forgets everything, and trains on from the two files."""
    state_path, model_path = root / "loader.json", root / "model.pt"
    delivered = Delivered()

    loader = training_loader(root, seed=seed, num_workers=WORKERS_BEFORE)
    num_steps = EPOCHS * len(loader)
    stop_at = STOP_EPOCH * len(loader) + len(loader) // 2
    training = Training(seed=seed, num_steps=num_steps)
    _train(training, loader, delivered, bar(_batches(loader, stop_at), "training", stop_at))
    state_path.write_text(json.dumps(loader.state_dict()), encoding="utf-8")
    training.save(model_path)
    num_before = len(delivered.ids)

    loader = training_loader(root, seed=seed, num_workers=WORKERS_AFTER)
    loader.load_state_dict(json.loads(state_path.read_text(encoding="utf-8")))
    training = Training(seed=seed + 1, num_steps=num_steps)  # other first weights: the file must replace them
    training.load(model_path)
    rest = num_steps - stop_at
    _train(training, loader, delivered, bar(_batches(loader, rest), "training on", rest))
    return Interrupted(training, delivered, num_before, state_path, model_path)


def _train(training: Training, loader: DataLoader[Batch], delivered: Delivered, batches: Iterable[Batch]) -> None:
    for batch in batches:
        training.step(batch)
        delivered.add(loader, batch)


def uninterrupted(root: pathlib.Path, seed: int, bar: Bar) -> Delivered:
    """Returns what a loader delivers that nobody stops, without workers and without training."""
    loader = training_loader(root, seed=seed, num_workers=WORKERS_REFERENCE)
    delivered, num_steps = Delivered(), EPOCHS * len(loader)
    for batch in bar(_batches(loader, num_steps), "checking", num_steps):
        delivered.add(loader, batch)
    return delivered


def _batches(loader: DataLoader[Batch], num_steps: int) -> Iterable[Batch]:
    """Yields the next `num_steps` batches: each pass over the loader is one epoch, or what was left of it."""
    done = 0
    while done < num_steps:
        for batch in loader:
            yield batch
            done += 1
            if done == num_steps:
                return
