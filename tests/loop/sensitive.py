"""A small training run in which everything that a checkpoint must hold has an effect on every later number.

Dropout, BatchNorm, AdamW, a second optimizer with momentum, warm-up and cosine per step, a plateau schedule per epoch,
clipping, accumulation over two batches, an average of the weights, a frozen layer, random draws of Python, numpy, torch
and generators of its own, evaluation in between. 23 samples in batches of 3: the last batch is smaller.
"""

from __future__ import annotations

import collections
import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import xxhash
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler

import headrace as hr

NUM_SAMPLES, BATCH_SIZE, NUM_EPOCHS, ACCUMULATE = 23, 3, 3, 2
BATCHES_PER_EPOCH = 8


def vector(row: int) -> np.ndarray:
    """The record of a row."""
    return np.cos(np.arange(6) * (row + 1)).astype(np.float32)


def shaken(vector: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An augmentation in headrace's way."""
    return vector + 0.1 * rng.standard_normal(6).astype(np.float32)


class Rows(Dataset):
    """Augments as people do: with the global generators of three libraries."""

    def __len__(self):
        return NUM_SAMPLES

    def __getitem__(self, row):
        noise = random.random() + np.random.rand() + torch.rand(()).item()
        return torch.from_numpy(vector(row)) + 0.1 * noise, row % 2


class Stream(IterableDataset):
    """The same rows, which arrive one after another."""

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, jump = (0, 1) if info is None else (info.id, info.num_workers)
        rows = Rows()
        return (rows[row] for row in range(first, NUM_SAMPLES, jump))

    def __len__(self):
        return NUM_SAMPLES


def sample(row: int) -> dict[str, Any]:
    return {"x": vector(row), "y": row % 2}


def shake(one, rng):
    return {**one, "x": shaken(one["x"], rng)}


def own_loader(**more: Any) -> Any:
    """headrace's loader over the rows."""
    plan = hr.Plan.of(range(NUM_SAMPLES)).map(sample).map(shake)
    return hr.DataLoader(plan, BATCH_SIZE, shuffle=True, seed=5, **more)


def torch_loader(**more: Any) -> Any:
    return DataLoader(Rows(), **{"batch_size": BATCH_SIZE, "shuffle": True, **more})


def with_generator(**more: Any) -> Any:
    return torch_loader(generator=torch.Generator().manual_seed(3), **more)


def weighted(**more: Any) -> Any:
    weights = [1.0 + row % 3 for row in range(NUM_SAMPLES)]
    return torch_loader(shuffle=None, sampler=WeightedRandomSampler(weights, NUM_SAMPLES), **more)


def streamed(**more: Any) -> Any:
    return DataLoader(Stream(), batch_size=BATCH_SIZE, **more)


def stateful(**more: Any) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(Rows(), batch_size=BATCH_SIZE, shuffle=True, **more)


LOADERS: dict[str, Callable[..., Any]] = {
    "own": own_loader,
    "torch": torch_loader,
    "generator": with_generator,
    "weighted": weighted,
    "streamed": streamed,
    "stateful": stateful,
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(6, 6)
        self.frozen.requires_grad_(False)
        self.body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2))
        self.register_buffer("scale", torch.ones(()), persistent=False)

    def forward(self, x):
        self.scale.mul_(1.001)
        return self.body(self.frozen(x)) * self.scale


class Run:
    """One run: everything made anew, as a program makes it when it starts."""

    def __init__(
        self, folder: Any, *, loader: str = "own", seed: int = 0, loader_args: dict[str, Any] | None = None, **more: Any
    ):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.net = Net()
        self.head = nn.Linear(2, 2)
        self.optimizer = torch.optim.AdamW(
            [{"params": self.net.body[0].parameters(), "lr": 3e-3}, {"params": self.net.body[1:].parameters()}], lr=1e-2
        )
        self.second = torch.optim.SGD(self.head.parameters(), lr=1e-2, momentum=0.9)
        warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=4)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 12)
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(self.optimizer, [warm, cosine], milestones=[4])
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.second, patience=0, factor=0.5)
        self.ema = AveragedModel(self.net, multi_avg_fn=get_ema_multi_avg_fn(0.8))
        self.generator = torch.Generator().manual_seed(seed)
        self.numpy_generator = np.random.default_rng(seed)
        self.history: dict[str, Any] = {"losses": [], "weight": 1.0}
        self.loader = LOADERS[loader](**(loader_args or {}))
        self.checkpoint = hr.Checkpointer(
            folder,
            model={"net": self.net, "head": self.head},
            optimizer={"main": self.optimizer, "head": self.second},
            scheduler={"main": self.scheduler, "plateau": self.plateau},
            extra={"ema": self.ema, "history": self.history},
            generators={"torch": self.generator, "numpy": self.numpy_generator},
            loader=self.loader,
            **{"every_s": None, "background": False, "signals": (), **more},
        )

    def micro_steps(self) -> Iterator[dict[str, Any]]:
        """Trains; yields a record of each batch, behind everything that is done for it, and of each evaluation."""
        for epoch in self.checkpoint.epochs(NUM_EPOCHS):
            for batch in self.checkpoint.batches():
                x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
                loss = self.forward(x, y)
                loss.backward()
                self.history["losses"].append(loss.item())
                self.history["weight"] *= 1.0 + 0.01 * loss.item()
                if self.checkpoint.batch % ACCUMULATE == 0:
                    self.update()
                yield self.record(epoch, self.checkpoint.batch, loss, x)
            metric = self.evaluate()
            self.plateau.step(metric)
            yield self.record(epoch, "tail", metric, metric)

    def forward(self, x, y):
        x = x + 0.01 * random.random() + 0.01 * np.random.rand() + 0.01 * torch.rand((), generator=self.generator)
        x = x * float(self.numpy_generator.uniform(0.9, 1.1)) * self.history["weight"]
        return nn.functional.cross_entropy(self.head(self.net(x)), y) / ACCUMULATE

    def update(self):
        nn.utils.clip_grad_norm_([*self.net.parameters(), *self.head.parameters()], 0.5)
        for optimizer in (self.optimizer, self.second):
            optimizer.step()
        self.scheduler.step()
        self.ema.update_parameters(self.net)
        self.checkpoint.step()
        for optimizer in (self.optimizer, self.second):
            optimizer.zero_grad()

    def evaluate(self):
        before = copy.deepcopy(self.net.scale)
        self.net.eval()
        with torch.no_grad():
            xs = torch.stack([torch.from_numpy(vector(row)) for row in range(10)])
            metric = self.head(self.net(xs)).square().mean() + self.ema(xs).square().mean()
        self.net.train()
        self.net.scale.copy_(before)
        return metric

    def record(self, epoch, batch, loss, x) -> dict[str, Any]:
        """What happened, to the last bit."""
        return {
            "place": (epoch, batch),
            "loss": loss.item().hex(),
            "data": digest(x),
            "all": digest(
                {
                    "net": self.net.state_dict(),
                    "scale": self.net.scale,
                    "head": self.head.state_dict(),
                    "modes": [module.training for module in self.net.modules()],
                    "frozen": [not p.requires_grad for p in [*self.net.parameters(), *self.ema.parameters()]],
                    "steps": self.checkpoint.steps,
                    "main": self.optimizer.state_dict(),
                    "second": self.second.state_dict(),
                    "scheduler": [self.scheduler.get_last_lr(), self.scheduler.last_epoch],
                    "plateau": self.plateau.state_dict(),
                    "ema": self.ema.state_dict(),
                    "history": self.history,
                    "grads": [p.grad for p in [*self.net.parameters(), *self.head.parameters()]],
                }
            ),
        }


def digest(value: Any) -> str:
    """Digest of every bit of a nested value."""
    state = xxhash.xxh3_128()

    def text(words):
        state.update(words.encode())

    def add(one):
        if isinstance(one, torch.Tensor):
            text(repr((one.dtype, tuple(one.shape))))
            state.update(one.detach().cpu().contiguous().numpy().tobytes())
        elif isinstance(one, collections.abc.Mapping):
            for key, item in one.items():
                text(repr(key))
                add(item)
        elif isinstance(one, list | tuple):
            text(f"{len(one)}")
            for item in one:
                add(item)
        else:
            text(one.hex() if isinstance(one, float) else repr(one))

    add(value)
    return state.hexdigest()


def whole(folder: Any, **more: Any) -> list[dict[str, Any]]:
    """The records of a run that nobody interrupts."""
    run = Run(folder, **more)
    try:
        return list(run.micro_steps())
    finally:
        run.checkpoint.close()
