"""Trains a small network on scikit-learn's handwritten digits; kill it whenever you like, and start it again.

    python examples/train_digits.py runs/digits

However often it is killed, it ends with the parameters that it would have had, to the last bit, and its histories (JSON lines,
and MLflow in an SQLite file where MLflow is installed) have neither gaps nor repeats.
"""

import hashlib
import importlib.util
import pathlib
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import headrace as hr

EPOCHS = 3


def shift(sample, rng):
    """A random shift by up to one pixel: the augmentation of this small task."""
    by = rng.integers(-1, 2, size=2)
    return {**sample, "image": np.roll(sample["image"], by, axis=(1, 2))}


def data():
    """Training and validation plans of 1,797 images of 8 x 8 pixels."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    samples = [{"image": image, "label": int(label)} for image, label in zip(images, digits.target, strict=True)]
    return hr.Plan.of(samples[:1500]).map(shift), hr.Plan.of(samples[1500:])


def main(folder):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Flatten(), torch.nn.Dropout(0.2), torch.nn.Linear(16 * 4 * 4, 10)),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=EPOCHS * 47)
    training, validation = data()

    def measure(batch):
        scores = model(batch["image"])
        right = scores.argmax(1) == batch["label"]
        return {"loss": cross_entropy(scores, batch["label"], reduction="none"), "accuracy": right.float()}

    loop = hr.Loop(
        model,
        optimizer,
        train=hr.DataLoader(training, batch_size=32, shuffle=True, seed=0),
        evaluate=hr.DataLoader(validation, batch_size=64),
        measure=measure,
        scheduler=scheduler,
        epochs=EPOCHS,
        folder=folder,
        every=5,
        watched="accuracy",
        better="max",
        trackers=[hr.track.jsonl(), *([hr.track.mlflow()] if importlib.util.find_spec("mlflow") else [])],
        config={"model": "conv 16, linear", "learning rate": 1e-2, "batch size": 32},
    )
    for step in loop:
        step.update(cross_entropy(model(step.batch["image"]), step.batch["label"]))
    loop.close()
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in model.state_dict().values())).hexdigest()
    print(f"{loop.steps} steps; parameters {digest[:16]}; checkpoints in {pathlib.Path(folder) / 'checkpoints'}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/digits")
