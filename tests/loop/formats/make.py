"""The run whose checkpoints are kept here, one of each format that was ever written; what it does never changes.

python -m tests.loop.formats.make FOLDER    writes the checkpoint, and what the run did after it; for a new format only

A folder that is kept stays as the version that knew no other format wrote it.
"""

import collections
import itertools
import json
import math
import pathlib
import random
import shutil
import sys
import tempfile

import numpy as np
import torch
from torch import nn

import headrace as hr

NUM_ROWS, BATCH_SIZE, SAVED_BEHIND = 24, 4, 9
"""Rows; rows of a batch; batches behind which it is saved: in the second epoch, with one of two gradients pending."""


def sample(row):
    return {"x": np.cos(np.arange(4) * (row + 1)).astype(np.float32), "y": row % 2}


def shaken(one, rng):
    return {**one, "x": one["x"] + np.float32(0.1) * rng.standard_normal(4).astype(np.float32)}


def notes():
    """A value of each kind that a checkpoint can hold."""
    return {
        "none": None,
        "text": "ä\n",
        "numbers": [1, -(2**70), 0.1, -0.0, math.inf, True],
        "nan": math.nan,
        "complex": complex(1, -2.5),
        "tuple": (1, ("a",)),
        "sets": [{3, 1}, frozenset({"b"})],
        "bytes": b"\x00\xff",
        "keys": {1: "one", (2, "b"): "two"},
        "dollar": {"$": 1},
        "ordered": collections.OrderedDict(b=1, a=2),
        "counter": collections.Counter("abca"),
        "deque": collections.deque([1, 2, 3], maxlen=3),
        "tensor": torch.arange(6, dtype=torch.int16).reshape(2, 3),
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "array": np.arange(4.0).reshape(2, 2),
        "scalar": np.float32(0.25),
        "types": [torch.float16, torch.device("cpu"), torch.Size([2, 3])],
    }


class Run:
    """Everything made anew, as a program makes it when it starts."""

    def __init__(self, folder, seed=0):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.3), nn.Tanh(), nn.Linear(5, 2))
        self.net[0].bias.requires_grad_(False)
        parameters = [one for one in self.net.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 9)
        self.generator = np.random.default_rng(seed)
        self.counts = {"seen": 0}
        self.notes = {}
        fields = (
            hr.Field(name="x", kind="array", dtype="float32", shape=(4,)),
            hr.Field(name="y", kind="number", dtype="int", role="target", num_classes=2),
        )
        plan = hr.Plan.of(range(NUM_ROWS)).map(sample).map(shaken)
        self.checkpoint = hr.Checkpointer(
            folder,
            model=self.net,
            optimizer=self.optimizer,
            scheduler=self.schedule,
            extra={"counts": self.counts, "notes": self.notes},
            generators={"own": self.generator},
            loader=hr.DataLoader(
                plan, BATCH_SIZE, shuffle=True, seed=7, contract=hr.Contract(fields=fields, extra_fields="refuse")
            ),
            every_s=None,
            background=False,
            signals=(),
            config={"lr": 1e-2, "note": "made up"},
            data={"name": "cosines", "rows": NUM_ROWS},
            best="min",
        )

    def losses(self):
        """Trains for three epochs; yields the loss of each batch."""
        for _ in self.checkpoint.epochs(3):
            for batch in self.checkpoint.batches():
                # Behind the batch norm, which would take a shift or a scale of all rows out again.
                noise = torch.tensor([random.random(), np.random.rand()]) * self.generator.random()
                loss = nn.functional.cross_entropy(self.net(batch["x"]) + noise, batch["y"]) / 2
                loss.backward()
                self.counts["seen"] += len(batch["y"])
                if self.checkpoint.batch % 2 == 0:
                    self.optimizer.step()
                    self.schedule.step()
                    self.checkpoint.step()
                    self.optimizer.zero_grad()
                yield loss.item()
        self.checkpoint.close()

    def facts(self):
        """What the run is at one moment, as JSON has it; numbers are written to the last bit."""
        moments = self.optimizer.state_dict()["state"]
        return {
            "net": {name: spelled(value) for name, value in self.net.state_dict().items()},
            "moments": {str(number): spelled(one["exp_avg"]) for number, one in moments.items()},
            "pending": {name: one.grad is not None and spelled(one.grad) for name, one in self.net.named_parameters()},
            "trained": [name for name, one in self.net.named_parameters() if one.requires_grad],
            "rate": self.optimizer.param_groups[0]["lr"].hex(),
            "steps": self.checkpoint.steps,
            "best": self.checkpoint.best_metric,
            "counts": dict(self.counts),
        }


def spelled(tensor):
    return [float(one).hex() for one in tensor.flatten()]


def main(folder):
    with tempfile.TemporaryDirectory() as place:
        run = Run(place)
        losses = run.losses()
        for _ in itertools.islice(losses, SAVED_BEHIND):
            pass
        run.notes |= notes()
        run.checkpoint.save(metric=0.75, reason="kept for good")
        facts = run.facts()
        after = list(losses)
        (saved,) = (
            path
            for path in pathlib.Path(place).glob("step-*")
            if '"kept for good"' in (path / "manifest.json").read_text()
        )
        shutil.copytree(saved, folder / saved.name)
        text = json.dumps({"facts": facts, "losses": [loss.hex() for loss in after]}, indent=1)
        (folder / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(pathlib.Path(sys.argv[1]))
