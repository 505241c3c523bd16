"""The data path of the demo's training run: what a reader would write for a data set of image files.

Axes: C channel, H height, W width.
"""

from __future__ import annotations

import io
import pathlib
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from headrace.engine.loader import DataLoader
from headrace.engine.plan import folder

if TYPE_CHECKING:
    import torch

    from headrace.engine.source.folder import FileRecord

__all__ = ["Batch", "evaluation_loader", "training_loader"]

Batch: TypeAlias = "dict[str, torch.Tensor]"
"""image (B, 3, 16, 16) float32 in 0..1, label (B,) int64."""

BATCH_SIZE = 64
MAX_TURN = np.deg2rad(12)
MAX_SHIFT = 1.5
"""Pixels of the 16 x 16 image: under one pixel of the original 8 x 8 digit."""
MAX_ZOOM = 1.12


def decode(record: FileRecord) -> dict[str, Any]:
    """Returns the image, and the label that the class folder gives."""
    with Image.open(io.BytesIO(record.data)) as image:
        return {"image": image.convert("RGB"), "label": record.label}


def augment(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Turns, zooms and shifts the image a little, about its centre.

    The draws belong to (seed, epoch, sample): the same under any number of workers and after any resume.
    """
    image = sample["image"]
    turn, zoom = rng.uniform(-MAX_TURN, MAX_TURN), MAX_ZOOM ** rng.uniform(-1, 1)
    shift_x, shift_y = rng.uniform(-MAX_SHIFT, MAX_SHIFT, size=2)
    cos, sin = np.cos(turn) / zoom, np.sin(turn) / zoom
    centre_x, centre_y = (image.width - 1) / 2, (image.height - 1) / 2
    # Pillow asks for the map from output to input pixels, row by row.
    row_x = (cos, sin, centre_x - cos * centre_x - sin * centre_y + shift_x)
    row_y = (-sin, cos, centre_y + sin * centre_x - cos * centre_y + shift_y)
    moved = image.transform(image.size, Image.Transform.AFFINE, row_x + row_y, Image.Resampling.BILINEAR)
    return {**sample, "image": moved}


def to_array(sample: dict[str, Any]) -> dict[str, Any]:
    """Returns the image as (C, H, W) float32 in 0..1."""
    pixels = np.asarray(sample["image"], dtype=np.float32) / 255
    return {**sample, "image": np.ascontiguousarray(pixels.transpose(2, 0, 1))}


def training_loader(root: pathlib.Path, *, seed: int, num_workers: int) -> DataLoader[Batch]:
    """Returns shuffled, augmented batches of the training digits."""
    plan = folder(root / "train").map(decode).map(augment).map(to_array)
    return DataLoader(plan, batch_size=BATCH_SIZE, shuffle=True, seed=seed, num_workers=num_workers)


def evaluation_loader(root: pathlib.Path) -> DataLoader[Batch]:
    """Returns the held-out digits as they are, in their own order."""
    plan = folder(root / "test").map(decode).map(to_array)
    return DataLoader(plan, batch_size=BATCH_SIZE, num_workers=0)
