"""The batch that is kept, on the host and on a device. Torch's meta device stands for one that this machine lacks."""

import dataclasses
import pathlib
import sys
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from headrace.doctor.timing import runs
from headrace.doctor.timing.consumer import held
from headrace.doctor.timing.devices import is_on_device, on_device
from headrace.doctor.timing.kept import Kept

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from rows import Rows

META = torch.device("meta")


class Pair(NamedTuple):
    image: torch.Tensor
    name: str


@dataclasses.dataclass
class Holder:
    image: torch.Tensor
    rest: list


class Sized(list):
    """A list of the user's own, whose constructor wants more."""

    def __init__(self, items, size):
        super().__init__(items)
        self.size = size


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(3),
        [torch.zeros(3), torch.zeros(2)],
        {"a": {"b": (torch.zeros(3), torch.zeros(1))}},
        OrderedDict(a=torch.zeros(3)),
        Pair(torch.zeros(3), "name"),
        Holder(torch.zeros(3), [torch.zeros(2)]),
        Sized([torch.zeros(3)], 1),
    ],
    ids=lambda batch: type(batch).__name__,
)
def test_all_tensors_move_to_the_device(batch):
    moved = on_device(batch, META)
    assert is_on_device(moved)
    assert not is_on_device(batch)
    assert type(moved) is (list if isinstance(batch, Sized) else type(batch))


def test_what_is_no_tensor_stays():
    batch = {"name": ["a", "b"], "size": 3, "array": np.zeros(2)}
    assert on_device(batch, META).keys() == batch.keys()
    assert not is_on_device(on_device(batch, META))


@pytest.mark.parametrize(
    "step",
    [
        lambda batch: batch["image"].div_(255),
        lambda batch: batch["array"].__imul__(0),
        lambda batch: batch["image"].zero_(),
    ],
)
def test_each_step_gets_the_batch_as_it_was(step):
    kept = Kept({"image": torch.full((2, 3), 255.0), "array": np.ones(3)})
    kept.try_out(step)
    assert kept.is_changed
    for _ in range(3):
        batch = kept.take()
        assert batch["image"].eq(255).all()
        assert batch["array"].all()
        step(batch)


def test_a_step_that_changes_nothing_gets_no_copies():
    kept = Kept({"image": torch.full((2, 3), torch.nan), "extra": 3})
    kept.try_out(lambda batch: (batch.pop("extra"), batch["image"] * 2))
    assert not kept.is_changed
    assert kept.take()["image"] is kept.batch["image"]
    assert "extra" in kept.take()


def test_a_step_that_changes_its_batch_is_told(timed):
    with held(lambda batch: batch["image"].add_(1)) as consumer:
        record = timed(DataLoader(Rows(), batch_size=4), "C", consumer=consumer)
    assert "changes its batch in place" in record.why
    assert record.window is not None


@pytest.fixture
def with_device(monkeypatch):
    """Makes the meta device one that is in use, and counts how often it is waited for."""
    waited = []
    monkeypatch.setattr(runs, "has_device", lambda: True)
    monkeypatch.setattr(runs, "device_in_use", lambda: META)
    monkeypatch.setattr(runs, "synchronise", lambda: waited.append(1))
    return waited


def seen_by_step(timed, kind, step=lambda batch: None, **wishes):
    seen = []

    def seeing(batch):
        seen.append(batch["image"].device.type)
        step(batch)

    with held(seeing) as consumer:
        record = timed(DataLoader(Rows(), batch_size=4, num_workers=1), kind, consumer=consumer, **wishes)
    return record, seen


def test_compute_alone_finds_its_batch_on_the_device(timed, with_device):
    record, seen = seen_by_step(timed, "C")
    assert record.device == "meta"
    assert seen[:2] == ["cpu", "meta"]
    assert set(seen[1:]) == {"meta"}
    assert len(with_device) == 2, "only at the ends of what counts"


def test_with_the_copy_it_finds_it_on_the_host(timed, with_device):
    record, seen = seen_by_step(timed, "Ct")
    assert record.device == "meta"
    assert set(seen) == {"cpu"}
    assert len(with_device) == 2


def test_beside_the_loader_it_finds_it_on_the_device(timed, with_device):
    _, seen = seen_by_step(timed, "N")
    assert set(seen[1:]) == {"meta"}


def test_the_real_loop_delivers_on_the_host(timed, with_device):
    record, seen = seen_by_step(timed, "I", num_epochs=1)
    assert set(seen) == {"cpu"}
    assert record.device is None
    assert len(with_device) == 2


def test_a_step_that_needs_the_host_gets_it(timed, with_device):
    record, seen = seen_by_step(timed, "C", step=lambda batch: batch["image"].numpy())
    assert "of the host only" in record.why
    assert set(seen[2:]) == {"cpu"}


def test_nothing_is_copied_where_the_step_does_not_use_the_device(timed, monkeypatch):
    monkeypatch.setattr(runs, "has_device", lambda: True)
    record, _ = seen_by_step(timed, "Ct")
    assert "puts nothing on the CUDA device" in record.why
    assert record.window is None


def on_meta(samples):
    return {"image": torch.zeros(len(samples), 3, device="meta")}


def test_nothing_is_copied_where_the_loader_delivers_on_the_device(timed, monkeypatch):
    monkeypatch.setattr(runs, "has_device", lambda: True)
    record = timed(DataLoader(Rows(), batch_size=4, collate_fn=on_meta), "Ct")
    assert "delivers batches on the device" in record.why
