"""A setting applied to a loader: that, and nothing else."""

import itertools
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset, WeightedRandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader

import headrace as hr
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.crew import crew_of
from headrace.doctor.timing.passing import Passing
from headrace.doctor.timing.realise import Passes, realise
from headrace.doctor.timing.setting import Setting

sys.path.insert(0, str(__import__("pathlib").Path(__file__).parent))
from rows import Batches, Lists, Rows, Stream, Wrong, join_lists

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # StatefulDataLoader's constructor
ROWS = Rows(20)


def with_setting(loader, /, **setting):
    return realise(Subject(loader), Setting(**setting))


def contents(loader):
    """All batches, as lists."""
    return [
        {name: value.tolist() for name, value in batch.items()} if isinstance(batch, dict) else batch.tolist()
        for batch in loader
    ]


def test_nothing_is_changed_unasked():
    loader = DataLoader(ROWS, batch_size=4)
    assert with_setting(loader) is loader
    mine = hr.DataLoader(ROWS, batch_size=4)
    assert with_setting(mine) is mine
    passes = with_setting(Batches(3))
    assert isinstance(passes, Passes)
    assert len(list(passes)) == len(list(passes)) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(ROWS, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1)),
        lambda: DataLoader(ROWS, batch_size=3, drop_last=True, num_workers=1),
        lambda: DataLoader(ROWS, batch_sampler=BatchSampler(SequentialSampler(ROWS), 6, False), collate_fn=join_lists),
        lambda: StatefulDataLoader(ROWS, batch_size=4),
        lambda: hr.DataLoader(ROWS, batch_size=4, shuffle=True, seed=3),
        lambda: DataLoader(Stream(20), batch_size=4),
    ],
)
@pytest.mark.parametrize("num_workers", [0, 1])
def test_another_number_of_workers_delivers_the_same(make, num_workers):
    changed = with_setting(make(), num_workers=num_workers)
    assert crew_of(Subject(make()), changed).num_workers == num_workers
    assert contents(changed) == contents(make())


def test_each_setting_of_torch_is_applied():
    loader = DataLoader(ROWS, batch_size=4, num_workers=1)
    options = {
        "num_workers": [2, 3],
        "prefetch_factor": [1, 7],
        "persistent_workers": [True],
        "start_method": ["spawn"],
    }
    for name, values in options.items():
        for value in values:
            changed = with_setting(loader, **{name: value})
            attribute = "multiprocessing_context" if name == "start_method" else name
            found = getattr(changed, attribute)
            assert (found.get_start_method() if name == "start_method" else found) == value
            same = {"num_workers", "prefetch_factor", "persistent_workers", "batch_size", "collate_fn"} - {name}
            assert all(getattr(changed, one) == getattr(loader, one) for one in same)
    assert (loader.num_workers, loader.prefetch_factor, loader.persistent_workers) == (1, 2, False)


def test_pinning_is_the_users_own():
    for pins, workers in itertools.product([False, True], [0, 2]):
        loader = DataLoader(ROWS, batch_size=4, pin_memory=pins)
        assert with_setting(loader, num_workers=workers).pin_memory is pins
        assert with_setting(loader, pin_memory=False).pin_memory is False
        mine = hr.DataLoader(ROWS, batch_size=4, pin_memory=pins)
        assert with_setting(mine, num_workers=workers).pin_memory is pins


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_pinning_needs_a_device():
    with pytest.raises(CannotExamine, match="no CUDA device"):
        with_setting(DataLoader(ROWS), pin_memory=True)


@pytest.mark.parametrize("option", [{"prefetch_factor": 4}, {"persistent_workers": True}, {"start_method": "fork"}])
@pytest.mark.parametrize("make", [DataLoader, hr.DataLoader])
def test_settings_of_workers_need_workers(make, option):
    with pytest.raises(CannotExamine, match="num_workers=0: without workers nothing"):
        with_setting(make(ROWS, batch_size=4, num_workers=2), num_workers=0, **option)


def test_batches_are_read_at_once():
    order = torch.Generator()
    loader = DataLoader(Lists(10), batch_size=4, shuffle=True, generator=order)
    plain = contents(DataLoader(Lists(10), batch_size=4, shuffle=True, generator=order.manual_seed(5)))
    order.manual_seed(5)
    assert contents(with_setting(loader, reads_batches=True)) == plain
    tensors = TensorDataset(torch.arange(10.0), torch.arange(10))
    changed = with_setting(DataLoader(tensors, batch_size=4, drop_last=True), reads_batches=True, num_workers=1)
    assert [x.tolist() for x, _ in changed] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        (DataLoader(ROWS, batch_size=4), "rows.Rows does not take a list of rows"),
        (DataLoader(Wrong(10), batch_size=4), "what it returns is no batch"),
        (DataLoader([np.zeros(2), np.zeros(2)], batch_size=2), "does not take a list of rows"),
        (DataLoader(Lists(10), batch_size=4, collate_fn=join_lists), "joined by join_lists"),
        (DataLoader(Lists(10), batch_size=None), "no batches to read"),
        (DataLoader(Stream(10), batch_size=4), "a stream"),
        (hr.DataLoader(Lists(10), batch_size=4), "__getitems__"),
        (Batches(3), "no such setting"),
    ],
)
def test_batches_cannot_always_be_read_at_once(loader, said):
    with pytest.raises(CannotExamine, match=said):
        with_setting(loader, reads_batches=True)


def test_headraces_own_settings():
    loader = hr.DataLoader(ROWS, batch_size=4, seed=1)
    for runner in ("threads", "processes"):
        changed = with_setting(loader, num_workers=2, runner=runner, prefetch_factor=3)
        assert changed._runner.name == runner
        assert (crew_of(Subject(loader), changed).num_workers, crew_of(Subject(loader), changed).in_flight) == (2, 6)
    threads = hr.DataLoader(ROWS, batch_size=4, num_workers=2, runner="threads", seed=1)
    assert with_setting(threads, num_workers=0)._runner.name == "inline"
    processes = hr.DataLoader(ROWS, batch_size=4, num_workers=2, memory_limit=10**8, seed=1)
    assert contents(with_setting(processes, num_workers=0)) == contents(with_setting(processes, runner="threads"))
    with pytest.raises(CannotExamine, match="needs a number of workers"):
        with_setting(loader, runner="threads")
    with pytest.raises(CannotExamine, match="choice of headrace's own loader"):
        with_setting(DataLoader(ROWS), runner="threads")


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: DataLoader(ROWS, batch_size=4, **more),
        lambda **more: DataLoader(ROWS, batch_size=3, drop_last=True, **more),
        lambda **more: DataLoader(ROWS, batch_size=None, **more),
        lambda **more: DataLoader(ROWS, batch_size=4, collate_fn=join_lists, **more),
        lambda **more: DataLoader(ROWS, batch_sampler=[[3, 1], [2]], **more),
        lambda **more: DataLoader(ROWS, batch_size=4, sampler=range(19, -1, -1), **more),
        lambda **more: DataLoader(Stream(20), batch_size=4, **more),
        lambda **more: StatefulDataLoader(ROWS, batch_size=4, **more),
    ],
)
@pytest.mark.parametrize("more", [{}, {"num_workers": 2, "prefetch_factor": 3, "persistent_workers": True}])
def test_switching_the_import_delivers_the_same(make, more):
    switched = with_setting(make(**more), loader="headrace")
    assert isinstance(switched, hr.DataLoader)
    assert (switched.num_workers, switched.prefetch_factor) == (more.get("num_workers", 0), more.get("prefetch_factor"))
    torch.testing.assert_close(first_of(switched), first_of(make(**more)))


def first_of(loader):
    """The first batch, or its labels."""
    passing = Passing(loader, None, 0)
    try:
        batch = next(iter(loader))
    finally:
        passing.close()
    return torch.as_tensor(batch["label"] if isinstance(batch, dict) else batch)


def test_switching_the_import_keeps_what_shuffles():
    shuffled = with_setting(DataLoader(ROWS, batch_size=4, shuffle=True), loader="headrace", num_workers=0)
    rows = [row for batch in shuffled for row in batch["label"].tolist()]
    assert sorted(rows) == list(range(20)) != rows
    weighted = WeightedRandomSampler([0.0] * 19 + [1.0], 8)
    drawn = with_setting(DataLoader(ROWS, batch_size=4, sampler=weighted), loader="headrace")
    assert [batch["label"].tolist() for batch in drawn] == [[19] * 4] * 2


class OwnLoader(DataLoader):
    """Does more than its parent."""

    def __iter__(self):
        yield from super().__iter__()


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        (OwnLoader(ROWS), "does more than torch's DataLoader"),
        (Batches(3), "takes torch's arguments"),
        (DataLoader([], batch_size=2), "headrace.DataLoader"),
    ],
)
def test_the_import_cannot_always_be_switched(loader, said):
    with pytest.raises(CannotExamine, match=said):
        with_setting(loader, loader="headrace")


def test_other_kinds_say_what_they_cannot():
    with pytest.raises(CannotExamine, match="inside it"):
        with_setting(Batches(3), num_workers=2)
    assert len(list(with_setting(Batches(3), num_workers=0))) == 3
    with pytest.raises(CannotExamine, match=r"prefetch_factor=4: rows\.Batches has no such setting"):
        with_setting(Batches(3), prefetch_factor=4)
