"""torchdata's loader makes iterators for its state, beside those for a walk: what is seen is what the loop gets."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.utils.data import Dataset, random_split

from headrace.doctor.evidence.passes import LoaderTraces
from headrace.doctor.evidence.splits import split_overlap
from headrace.doctor.watch.loaders import LoaderObserver
from headrace.doctor.watch.timeline import Timeline

StatefulDataLoader = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # its constructor


class Rows(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, row):
        return row


@pytest.fixture
def observer():
    made = LoaderObserver(Timeline())
    made.install()
    yield made
    made.uninstall()


def seen(observer):
    return next(one for one in observer.seen() if isinstance(one, LoaderTraces))


def make(data, num_workers=0, **more):
    return StatefulDataLoader(
        data, batch_size=4, shuffle=True, num_workers=num_workers, persistent_workers=num_workers > 0, **more
    )


def taken(observer, loader, limit=None):
    """Rows of the batches that a loop gets; after each, an optimizer steps."""
    rows = []
    for batch in itertools.islice(loader, limit):
        assert observer.timeline.last_ids == tuple(batch.tolist())
        rows += batch.tolist()
        observer.timeline.stepped()
    return rows


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("stopped_after", [0, 3, 10, None], ids=["beginning", "middle", "last batch", "end"])
def test_a_run_that_goes_on_from_a_state_is_seen_from_there(observer, num_workers, stopped_after):
    first = make(Rows(), num_workers)
    before = taken(observer, first, stopped_after)
    state = first.state_dict()
    second = make(Rows(), num_workers)
    second.load_state_dict(state)
    epochs = [taken(observer, second) for _ in range(2)]
    if stopped_after == 3:
        assert sorted(before + epochs[0]) == list(range(40)), "the rest of the epoch"
    stopped, resumed = seen(observer).loaders
    assert stopped.num_passes == 1
    walked = [rows for rows in epochs if rows] if stopped_after != 10 else epochs
    assert [one.num_batches for one in resumed.passes] == [len(rows) // 4 for rows in walked]
    assert [one.num_steps for one in resumed.passes] == [len(rows) // 4 for rows in walked]
    assert all(one.is_exhausted for one in resumed.passes)
    assert (resumed.role, resumed.num_passes) == ("train", len(walked))
    assert resumed.num_worker_starts == num_workers, "they live on"
    assert resumed.num_drawn == len({row for rows in epochs for row in rows})


def test_a_state_that_is_asked_for_before_the_first_epoch_does_not_hide_it(observer):
    loader = make(Rows())
    loader.state_dict()
    epochs = [taken(observer, loader) for _ in range(2)]
    (trace,) = seen(observer).loaders
    assert [one.num_batches for one in trace.passes] == [len(rows) // 4 for rows in epochs] == [10, 10]
    assert [count for _, count in trace.iter_places] == [2]
    assert trace.passes[1].started_s >= trace.passes[0].started_s + trace.passes[0].wall_s


@pytest.mark.parametrize("is_leaking", [True, False])
def test_samples_that_training_and_evaluation_share_are_known_after_a_resume(observer, is_leaking):
    whole = Rows()
    train, evaluation = random_split(whole, [30, 10], generator=torch.Generator().manual_seed(0))
    stopped = make(train)
    taken(observer, stopped, 2)
    resumed = make(train)
    resumed.load_state_dict(stopped.state_dict())
    rest = taken(observer, resumed)
    list(make(whole if is_leaking else evaluation))
    (pair,) = split_overlap(seen(observer)).pairs
    assert pair.num_shared == (len(rest) if is_leaking else 0)
    assert pair.num_evaluation == (40 if is_leaking else 10)
