"""What is seen of loaders is what happened, and what happens is what would happen without us."""

from __future__ import annotations

import gc
import itertools
import random
import weakref

import numpy as np
import psutil
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, random_split

import headrace as hr
from headrace.doctor.evidence.passes import LoaderTraces
from headrace.doctor.evidence.stages import StageTimes
from headrace.doctor.watch.loaders import LoaderObserver
from headrace.doctor.watch.timeline import Timeline


class Rows(Dataset):
    """Samples that draw from every global generator."""

    def __init__(self, length=40):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        return row, random.random(), np.random.rand(), torch.rand(()).item()


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield from range(0 if info is None else info.id, 20, 1 if info is None else info.num_workers)


@pytest.fixture
def observer():
    made = LoaderObserver(Timeline())
    made.install()
    yield made
    made.uninstall()


def traces(observer):
    found = {type(one): one for one in observer.seen()}
    return found[LoaderTraces], found[StageTimes]


def seeded():
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def walk(**more):
    seeded()
    loader = DataLoader(Rows(), batch_size=7, shuffle=True, **more)
    batches = [[column.tolist() for column in batch] for _ in range(2) for batch in loader]
    return batches, states()


SETTINGS = [
    {},
    {"num_workers": 2},
    {"num_workers": 2, "persistent_workers": True},
    {"num_workers": 1, "prefetch_factor": 4, "drop_last": True},
]


@pytest.mark.parametrize("more", SETTINGS, ids=str)
def test_batches_and_random_states_are_the_same_with_and_without(more):
    plain = walk(**more)
    observer = LoaderObserver(Timeline())
    observer.install()
    try:
        assert walk(**more) == plain
    finally:
        observer.uninstall()
    assert walk(**more) == plain


@pytest.mark.parametrize("more", SETTINGS, ids=str)
def test_passes_are_counted_as_they_are_walked(observer, more):
    loader = DataLoader(Rows(), batch_size=7, shuffle=True, **more)
    counts = [len(list(loader)), len(list(loader))]
    seen, times = traces(observer)
    (trace,) = seen.loaders
    assert [one.num_batches for one in trace.passes] == counts
    assert all(one.is_exhausted for one in trace.passes)
    num_workers = more.get("num_workers", 0)
    assert [one.num_worker_starts for one in trace.passes] == [
        num_workers,
        0 if loader.persistent_workers else num_workers,
    ]
    assert all(one.num_samples in (40, 35) for one in trace.passes)
    assert len({one.order_hash for one in trace.passes}) == 2, "each epoch has an order of its own"
    assert trace.has_moved_samples
    assert (trace.num_passes, trace.shuffles, trace.role) == (2, True, "unknown")
    assert trace.where.startswith(__file__.rpartition("/")[2]) or "test_loader_observer.py:" in trace.where
    (stage,) = times.loaders
    assert stage.num_batches == sum(counts) - 2
    assert 0 < stage.num_measured <= sum(counts), "of quick batches, some"
    assert stage.fetch_s > 0
    assert len(stage.workers) == num_workers
    assert (stage.handover_s is not None) == (num_workers > 0)


def test_an_order_that_stays_is_seen_to_stay(observer):
    loader = DataLoader(Rows(), batch_size=7)
    for _ in range(3):
        list(loader)
    trace = traces(observer)[0].loaders[0]
    assert len({one.order_hash for one in trace.passes}) == 1
    assert trace.has_moved_samples is False
    assert not trace.shuffles


def test_a_walk_that_is_left_is_not_exhausted(observer):
    loader = DataLoader(Rows(), batch_size=4, num_workers=1)
    list(itertools.islice(loader, 3))
    next(iter(loader))
    for _ in zip(range(10), loader, strict=False):
        pass
    passes = traces(observer)[0].loaders[0].passes
    assert [(one.num_batches, one.is_exhausted) for one in passes] == [(3, False), (1, False), (10, False)]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_stream_has_batches_and_no_rows(observer, num_workers):
    assert len(list(DataLoader(Stream(), batch_size=5, num_workers=num_workers))) in (4, 5)
    trace = traces(observer)[0].loaders[0]
    (one,) = trace.passes
    assert one.num_batches in (4, 5)
    assert (one.num_samples, one.order_hash, trace.num_drawn, trace.root) == (None, None, 0, None)
    assert one.is_exhausted
    assert trace.has_moved_samples is None


def test_the_last_reference_to_an_iterator_ends_its_workers(observer):
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    before = set(psutil.Process().children())
    iterator = iter(loader)
    next(iterator)
    workers = set(psutil.Process().children()) - before
    assert len(workers) == 2
    del iterator
    gc.collect()
    assert not psutil.wait_procs(list(workers), timeout=20)[1]


def test_neither_loader_nor_data_set_is_kept_alive(observer):
    dataset = Rows()
    loader = DataLoader(Subset(dataset, list(range(9))), batch_size=3)
    list(loader)
    iterator = iter(loader)
    next(iterator)
    references = [weakref.ref(dataset), weakref.ref(loader)]
    del dataset, loader, iterator
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert traces(observer)[0].loaders[0].num_drawn == 9


def test_a_loader_without_a_name_is_followed_to_its_end(observer):
    for _ in DataLoader(Rows(), batch_size=4):
        pass
    (one,) = traces(observer)[0].loaders[0].passes
    assert (one.num_batches, one.is_exhausted) == (10, True)


def test_a_loader_made_before_is_seen_when_it_is_used():
    loader = DataLoader(Rows(), batch_size=4)
    observer = LoaderObserver(Timeline())
    observer.install()
    try:
        list(loader)
        trace = traces(observer)[0].loaders[0]
        assert (trace.where, trace.passes[0].num_batches) == (None, 10)
    finally:
        observer.uninstall()


def test_roles_and_samples_that_training_and_evaluation_share(observer):
    train, evaluation = random_split(Rows(), [30, 10])
    leaking = Subset(evaluation.dataset, [*evaluation.indices, train.indices[0]])
    loaders = [DataLoader(one, batch_size=5) for one in (train, evaluation, leaking)]
    for _ in loaders[0]:
        observer.timeline.stepped()
    for loader in loaders[1:]:
        list(loader)
    seen = traces(observer)[0]
    assert [one.role for one in seen.loaders] == ["train", "evaluation", "evaluation"]
    assert seen.overlaps == ((0, 2, 1, (train.indices[0],)),)
    assert len({one.root for one in seen.loaders}) == 1


def test_epochs_that_a_sampler_is_told(observer):
    sampler = torch.utils.data.DistributedSampler(Rows(), num_replicas=2, rank=0)
    told = DataLoader(Rows(), sampler=sampler, batch_size=5)
    untold = DataLoader(
        Rows(), sampler=torch.utils.data.DistributedSampler(Rows(), num_replicas=2, rank=1), batch_size=5
    )
    for epoch in range(3):
        sampler.set_epoch(epoch)
        list(told)
        list(untold)
    first, second = traces(observer)[0].loaders
    assert (first.has_set_epoch, first.num_set_epochs, first.is_distributed) == (True, 3, True)
    assert (second.has_set_epoch, second.num_set_epochs, second.is_distributed) == (True, 0, True)
    assert len({one.order_hash for one in first.passes}) == 3
    assert len({one.order_hash for one in second.passes}) == 1


def test_headraces_own_loader_is_seen(observer):
    observer.install_own()
    loader = hr.DataLoader(range(20), batch_size=6, num_workers=0)
    assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in loader]
    trace = traces(observer)[0].loaders[0]
    assert [(one.num_batches, one.is_exhausted) for one in trace.passes] == [(4, True), (4, True)]
    assert (trace.kind, trace.num_samples, trace.batch_size) == ("headrace.DataLoader", 20, 6)


def test_nothing_of_torch_or_headrace_is_changed_afterwards():
    from torch.utils.data._utils import fetch, worker
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from headrace.engine.loader import DataLoader as Own

    owners = [
        DataLoader,
        _BaseDataLoaderIter,
        fetch._BaseDatasetFetcher,
        worker,
        Own,
        torch.utils.data.DistributedSampler,
    ]
    before = [dict(vars(owner)) for owner in owners]
    observer = LoaderObserver(Timeline())
    observer.install()
    observer.install_own()
    list(DataLoader(Rows(), sampler=torch.utils.data.DistributedSampler(Rows(), num_replicas=2, rank=0)))
    observer.uninstall()
    for owner, attributes in zip(owners, before, strict=True):
        assert {name: value for name, value in vars(owner).items() if attributes.get(name) is not value} == {}


def test_an_iterator_that_outlives_the_hooks_goes_on():
    observer = LoaderObserver(Timeline())
    observer.install()
    iterators = [iter(DataLoader(Rows(), batch_size=4, num_workers=number)) for number in (0, 1)]
    for iterator in iterators:
        next(iterator)
    observer.uninstall()
    assert [len(list(iterator)) for iterator in iterators] == [9, 9]


def test_a_script_that_makes_loaders_without_end_is_followed_for_a_while(observer):
    for number in range(305):
        next(iter(DataLoader(Rows(4 + number), batch_size=4)))
    seen = traces(observer)[0]
    assert len(seen.loaders) == 300
    assert seen.num_unlisted >= 5


class Odd(DataLoader):
    """A subclass that hides what it is and has an iterator of its own."""

    def __iter__(self):
        for batch in super().__iter__():
            yield batch, "odd"

    @property
    def batch_size(self):
        raise RuntimeError("hidden")

    @batch_size.setter
    def batch_size(self, value):
        pass


def test_an_odd_subclass_works_whatever_is_seen_of_it(observer):
    assert len(list(Odd(Rows(), batch_size=4))) == 10
    assert traces(observer)[0].loaders == ()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_samples_of_the_newest_batch_are_those_that_it_holds(observer, num_workers):
    loader = DataLoader(Rows(), batch_size=7, shuffle=True, num_workers=num_workers)
    for rows, *_ in loader:
        assert observer.timeline.last_ids == tuple(rows.tolist())
    for _ in DataLoader(Stream(), batch_size=5):
        assert observer.timeline.last_ids is None


class Own(DataLoader):
    """A subclass whose iterators are made its own way, as torchdata's are."""

    def __iter__(self):
        return self._get_iterator()


class Late(DataLoader):
    """A subclass that opens the loader with its first batch, as accelerate's do."""

    def __iter__(self):
        yield from super().__iter__()


@pytest.mark.parametrize("kind", [Own, Late])
def test_a_subclass_with_an_iter_of_its_own_is_seen(observer, kind):
    loader = kind(Rows(), batch_size=4)
    for _ in range(2):
        list(loader)
    (trace,) = traces(observer)[0].loaders
    assert [(one.num_batches, one.is_exhausted) for one in trace.passes] == [(10, True)] * 2
    assert sum(times for _, times in trace.iter_places) == 2
