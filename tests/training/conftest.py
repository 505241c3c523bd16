"""A loop under observation: the observers installed, and loaders that say what they hand over."""

from __future__ import annotations

import contextlib
import types

import pytest
import torch
from torch import nn

from headrace.doctor.watch.checkpoints import CheckpointObserver
from headrace.doctor.watch.losses import LossObserver
from headrace.doctor.watch.models import ModelObserver
from headrace.doctor.watch.schedules import ScheduleObserver
from headrace.doctor.watch.timeline import Timeline
from headrace.doctor.watch.training import TrainingObserver


class Watched(types.SimpleNamespace):
    """What the observers have seen, by topic."""

    def batches(self, number, num, *, shape=(4, 4)):
        """Yields batches as loader `number` would hand them over."""
        for first in range(num):
            self.timeline.handed_over(number, tuple(range(first * shape[0], (first + 1) * shape[0])))
            yield torch.randn(shape)

    @property
    def optimizers(self):
        return self.training.seen()[0].optimizers

    @property
    def models(self):
        return self.model.seen()[0]

    @property
    def loss(self):
        return self.losses.seen()[0]

    @property
    def checkpoints(self):
        return self.saves.seen()[0]


@contextlib.contextmanager
def observing():
    timeline = Timeline()
    watched = Watched(
        timeline=timeline,
        training=TrainingObserver(timeline),
        model=ModelObserver(timeline),
        losses=LossObserver(timeline),
        schedules=ScheduleObserver(),
        saves=CheckpointObserver(timeline),
    )
    observers = (watched.training, watched.model, watched.losses, watched.schedules, watched.saves)
    try:
        for observer in observers:
            observer.install()
        yield watched
    finally:
        for observer in reversed(observers):
            observer.uninstall()


@pytest.fixture(autouse=True)
def _one_thread():
    """Steps of such small networks are too small to share."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def watched():
    torch.manual_seed(0)
    with observing() as found:
        yield found


class Net(nn.Module):
    """Two layers with dropout between."""

    def __init__(self, *, norm=False, num_out=2):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, num_out)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.norm(self.body(x)))))
