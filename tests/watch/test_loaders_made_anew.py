"""A loader that a script makes anew for each epoch is one loader with several epochs; two loaders stay two."""

from __future__ import annotations

import gc
import itertools
import textwrap
import weakref

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, SubsetRandomSampler, TensorDataset

import headrace as hr
from headrace.doctor.evidence.passes import LoaderTraces
from headrace.doctor.evidence.splits import split_overlap
from headrace.doctor.evidence.stages import StageTimes
from headrace.doctor.watch.board import Boards, Slot
from headrace.doctor.watch.drawn import Roots
from headrace.doctor.watch.loader_facts import facts_of
from headrace.doctor.watch.loaders import LoaderObserver
from headrace.doctor.watch.models import ModelObserver
from headrace.doctor.watch.record import LoaderRecord
from headrace.doctor.watch.summary import render_summary
from headrace.doctor.watch.timeline import Timeline

EPOCHS = 4


class Rows(Dataset):
    def __init__(self, length=40, split="train"):
        self.length, self.split = length, split
        self.table = np.arange(1000.0)

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        return torch.tensor(float(row))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(20))


@pytest.fixture
def observer():
    made = LoaderObserver(Timeline())
    made.install()
    yield made
    made.uninstall()


def seen(observer):
    found = {type(one): one for one in observer.seen()}
    return found[LoaderTraces], found[StageTimes]


def walks(observer):
    """Batches of each walk of each loader."""
    return [[one.num_batches for one in trace.passes] for trace in seen(observer)[0].loaders]


def made_once(observer, data, **more):
    loader = DataLoader(data(), batch_size=7, **more)
    for _ in range(EPOCHS):
        for _ in loader:
            observer.timeline.stepped()


def made_in_the_loop(observer, data, **more):
    dataset = data()
    for _ in range(EPOCHS):
        loader = DataLoader(dataset, batch_size=7, **more)
        for _ in loader:
            observer.timeline.stepped()


def made_in_a_function(observer, data, **more):
    def train_one_epoch():
        loader = DataLoader(data(), batch_size=7, **more)
        for _ in loader:
            observer.timeline.stepped()

    for _ in range(EPOCHS):
        train_one_epoch()


def made_without_a_name(observer, data, **more):
    for _ in range(EPOCHS):
        for _ in DataLoader(data(), batch_size=7, **more):
            observer.timeline.stepped()


DATA = {
    "rows": Rows,
    "subset": lambda: Subset(Rows(), list(range(0, 40, 2))),
    "tensors": lambda: TensorDataset(torch.arange(40.0), torch.ones(40, 3)),
    "list": lambda: [torch.tensor(number) for number in range(40)],
    "stream": Stream,
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("script", [made_in_the_loop, made_in_a_function, made_without_a_name])
def test_it_is_seen_like_a_loader_that_is_made_once(script, data):
    def watched(run):
        observer = LoaderObserver(Timeline())
        observer.install()
        try:
            run(observer, data)
            ((trace,), (stage,)) = (one.loaders for one in seen(observer))
        finally:
            observer.uninstall()
        passes = [
            (one.num_batches, one.num_samples, one.num_steps, one.order_hash, one.is_exhausted) for one in trace.passes
        ]
        facts = (trace.role, trace.num_passes, trace.num_drawn, trace.has_moved_samples, trace.num_short_passes)
        return (passes, facts, stage.num_batches), trace

    once, _ = watched(made_once)
    anew, trace = watched(script)
    assert anew == once
    assert trace.num_made == EPOCHS
    assert [one.is_made_anew for one in trace.passes] == [False] + [True] * (EPOCHS - 1)


@pytest.mark.parametrize("more", [{"num_workers": 1}, {"num_workers": 2, "persistent_workers": True}], ids=str)
def test_workers_of_each_epoch_are_counted_and_measured_together(observer, more):
    made_in_the_loop(observer, Rows, **more)
    ((trace,), (stage,)) = (one.loaders for one in seen(observer))
    assert [one.num_worker_starts for one in trace.passes] == [more["num_workers"]] * EPOCHS
    assert trace.num_worker_starts == EPOCHS * more["num_workers"]
    assert sum(worker.num_batches for worker in stage.workers) == stage.num_measured
    assert len(stage.workers) == more["num_workers"]
    assert stage.num_measured >= EPOCHS, "of quick batches, some: of each epoch the first, at least"
    assert stage.num_batches == EPOCHS * 5


def test_an_epoch_that_is_left_early_may_be_followed_by_a_new_loader(observer):
    dataset = Rows()
    for _ in range(3):
        loader = DataLoader(dataset, batch_size=4, num_workers=1, persistent_workers=True)
        for number, _ in enumerate(loader):
            if number == 2:
                break
    assert walks(observer) == [[3, 3, 3]]


def test_batches_taken_by_next_for_as_long_as_the_loader_is(observer):
    dataset = Rows()
    for _ in range(3):
        loader = DataLoader(dataset, batch_size=4)
        batches = iter(loader)
        for _ in range(len(loader)):
            next(batches)
    assert walks(observer) == [[10, 10, 10]]


def test_more_epochs_than_loaders_that_are_followed(observer):
    for _ in range(310):
        next(iter(DataLoader(Rows(), batch_size=4)))
    traces = seen(observer)[0]
    ((trace,), num_unlisted) = traces.loaders, traces.num_unlisted
    assert (trace.num_made, trace.num_passes, trace.num_short_passes, num_unlisted) == (310, 310, 310, 0)
    assert trace.has_moved_samples is False


def test_training_and_evaluation_that_one_function_makes_for_each_epoch(observer):
    whole = Rows()
    rows = torch.randperm(40).tolist()

    def get_loaders():
        train, evaluation = Subset(whole, rows[:20]), Subset(whole, rows[20:])
        return [DataLoader(part, batch_size=5) for part in (train, evaluation)]

    for _ in range(3):
        train, evaluation = get_loaders()
        for _ in train:
            observer.timeline.stepped()
        list(evaluation)
    traces = seen(observer)[0]
    assert [(one.role, one.num_passes, one.num_drawn) for one in traces.loaders] == [
        ("train", 3, 20),
        ("evaluation", 3, 20),
    ]
    assert traces.overlaps == ()


@pytest.mark.parametrize("is_leaking", [True, False])
def test_a_leak_is_seen_where_the_data_are_opened_anew_for_each_epoch(observer, is_leaking):
    for _ in range(3):
        whole = Rows()
        for _ in DataLoader(Subset(whole, range(30)), batch_size=5):
            observer.timeline.stepped()
        list(DataLoader(Subset(whole, range(29 if is_leaking else 30, 40)), batch_size=5))
    traces = seen(observer)[0]
    assert [(one.role, one.num_passes) for one in traces.loaders] == [("train", 3), ("evaluation", 3)]
    assert [pair.num_shared for pair in split_overlap(traces).pairs] == [int(is_leaking)]
    assert [(number, few) for _, _, number, few in traces.overlaps] == ([(1, (29,))] if is_leaking else [])


def test_epochs_told_to_samplers_that_are_made_with_it(observer):
    data = Rows()
    for epoch in range(3):
        sampler = torch.utils.data.DistributedSampler(data, num_replicas=2, rank=0)
        loader = DataLoader(data, sampler=sampler, batch_size=5)
        sampler.set_epoch(epoch)
        list(loader)
    (trace,) = seen(observer)[0].loaders
    assert (trace.num_made, trace.num_set_epochs) == (3, 3)
    assert len({one.order_hash for one in trace.passes}) == 3


def test_headraces_own_loader_made_anew(observer):
    observer.install_own()
    for limit in (None, 2, None):
        loader = hr.DataLoader(range(20), batch_size=6, num_workers=0)
        for _ in itertools.islice(loader, limit):
            pass
    assert walks(observer) == [[4, 2, 4]]


# Two loaders stay two.


def make(data, **more):
    return DataLoader(data, batch_size=4, **more)


def walk_in_turn(*loaders):
    for _ in range(2):
        for loader in loaders:
            list(loader)


def two_of_a_helper_in_one_line():
    first, second = make(Rows()), make(Rows())
    walk_in_turn(first, second)


def two_of_a_comprehension():
    data = Rows()
    walk_in_turn(*[make(data) for _ in range(2)])


def two_of_a_helper_that_looks_at_a_batch():
    def looked_at(data):
        loader = make(data)
        next(iter(loader))
        return loader

    data = Rows()
    walk_in_turn(*[looked_at(data) for _ in range(2)])


def one_after_the_other_from_two_lines():
    data = Rows()
    list(make(data))
    list(make(data))


def two_splits_of_one_object():
    data = Rows()
    for data.split in ("train", "val"):
        list(make(data))


def two_splits_of_one_class():
    for split in ("train", "val"):
        list(make(Rows(split=split)))


def two_lengths():
    for length in (40, 36):
        list(make(Rows(length)))


def two_folds():
    data = Rows()
    for left_out in range(2):
        list(make(Subset(data, [row for row in range(40) if row != left_out])))


def two_folds_by_sampler():
    data = Rows()
    for fold in (range(20), range(20, 40)):
        list(make(data, sampler=SubsetRandomSampler(fold)))


def two_parts_of_a_table():
    values = torch.arange(80.0)
    for part in (values[:40], values[40:]):
        list(make(TensorDataset(part)))


@pytest.mark.parametrize(
    "script",
    [
        two_of_a_helper_in_one_line,
        two_of_a_comprehension,
        two_of_a_helper_that_looks_at_a_batch,
        one_after_the_other_from_two_lines,
        two_splits_of_one_object,
        two_splits_of_one_class,
        two_lengths,
        two_folds,
        two_folds_by_sampler,
        two_parts_of_a_table,
    ],
)
def test_two_loaders_stay_two(observer, script):
    script()
    assert [one.num_made for one in seen(observer)[0].loaders] == [1, 1]
    first, second = walks(observer)
    assert len(first) == len(second)


def test_two_endless_ones_in_use_at_the_same_time(observer):
    def endless(data):
        while True:
            yield from make(data)

    data = Rows()
    for _ in zip(range(25), endless(data), endless(data), strict=False):
        pass
    assert walks(observer) == [[10, 10, 5], [10, 10, 5]]


def test_an_iterator_that_may_go_on_keeps_its_loader_apart(observer):
    data = Rows()
    begun = []
    for _ in range(2):
        begun.append(iter(make(data)))
        next(begun[-1])
    for iterator in begun:
        list(iterator)
    assert walks(observer) == [[10], [10]]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_training_of_new_parameters_has_loaders_of_its_own(is_new):
    timeline = Timeline()
    observers = [LoaderObserver(timeline), ModelObserver(timeline)]
    for observer in observers:
        observer.install()
    try:
        data, model = Rows(), torch.nn.Linear(1, 1)
        for _ in range(2):
            model = torch.nn.Linear(1, 1) if is_new else model
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loader = make(data)
            for _ in range(2):
                for batch in loader:
                    model(batch[:, None]).sum().backward()
                    optimizer.step()
        assert walks(observers[0]) == ([[10, 10], [10, 10]] if is_new else [[10] * 4])
    finally:
        for observer in reversed(observers):
            observer.uninstall()


def test_nothing_of_the_loaders_or_their_data_is_kept_alive(observer):
    references = []
    for _ in range(3):
        data = Rows()
        loader = DataLoader(Subset(data, list(range(9))), batch_size=3)
        references += map(weakref.ref, (data, data.table, loader, loader.dataset, loader.sampler))
        list(loader)
        del data, loader
        gc.collect()
        assert [reference() for reference in references] == [None] * len(references)
    ((trace,),) = (one.loaders for one in seen(observer)[:1])
    assert (trace.num_made, trace.num_drawn) == (3, 9)


def test_what_workers_wrote_to_boards_that_went_to_others_is_added():
    record, boards = LoaderRecord(0, None, Roots()), Boards()
    record.facts = facts_of(DataLoader(Rows(), num_workers=2))
    try:
        for number in range(3):
            record.board = board = boards.take()
            for worker in range(2):
                board.worker(worker)[Slot.BATCHES] = 10 + worker
                board.worker(worker)[Slot.FETCH_S] = 0.5
            if number < 2:
                boards.give_back(record.leave_board())
                assert record.board is None
        assert [(sums[Slot.BATCHES], sums[Slot.FETCH_S]) for sums in record._fetched()] == [(30, 1.5), (33, 1.5)]
    finally:
        boards.close()


# Whole scripts.

SCRIPT = """
    import torch
    from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, random_split

    class Rows(Dataset):
        def __init__(self, split):
            self.files = [f"{split}/{row}" for row in range(96)]

        def __len__(self):
            return len(self.files)

        def __getitem__(self, row):
            return torch.randn(4) + row, row % 2

    def begin():
        global model, optimizer
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train(loader):
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()

    def evaluate(loader):
        with torch.no_grad():
            return sum(len(model(features)) for features, _ in loader)
"""
SICK_SAMPLER = """
    begin()
    for epoch in range(4):
        data = Rows("train")
        train(DataLoader(data, batch_size=8, sampler=DistributedSampler(data, num_replicas=2, rank=0)))
        evaluate(DataLoader(Rows("val"), batch_size=8))
"""
SICK_SEED = """
    def get_loaders():
        torch.manual_seed(42)
        parts = random_split(Rows("all"), [72, 24])
        return DataLoader(parts[0], batch_size=8, shuffle=True), DataLoader(parts[1], batch_size=8)

    begin()
    for epoch in range(4):
        first, second = get_loaders()
        train(first)
        evaluate(second)
"""
HEALTHY = """
    data, held_out = Rows("train"), Rows("val")

    def loader_of(part, **more):
        return DataLoader(part, batch_size=8, num_workers=1, persistent_workers=True, **more)

    begin()
    for epoch in range(4):
        train(loader_of(data, shuffle=True))
        evaluate(loader_of(held_out))
"""
HEALTHY_SWEEP = """
    data, held_out = Rows("train"), Rows("val")

    def run():
        torch.manual_seed(0)
        begin()
        train(DataLoader(data, batch_size=8, shuffle=True))
        return evaluate(DataLoader(held_out, batch_size=8))

    for _ in range(4):
        run()
"""
HEALTHY_FOLDS = """
    data = Rows("all")
    begin()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    for fold in range(4):
        {put_back}
        torch.manual_seed(0)
        train(DataLoader(Subset(data, [row for row in range(96) if row % 4 != fold]), batch_size=8, shuffle=True))
        evaluate(DataLoader(Subset(data, range(fold, 96, 4)), batch_size=8))
"""


@pytest.mark.parametrize(
    ("ending", "codes", "expected", "told"),
    [
        (SICK_SAMPLER, ["HR607"], (2, 4 * 5, 4, 4), "made anew for each epoch, 4 times"),
        (SICK_SEED, ["HR606"], (2, 4 * 8, 4, 4), "made anew for each epoch, 4 times"),
        (HEALTHY, [], (2, 4 * 11, 4, 4), "made anew for each epoch, 4 times"),
        (HEALTHY_SWEEP, [], (8, 11, 1, 1), "3 loaders more made there"),
        *(
            (HEALTHY_FOLDS.replace("{put_back}", how), [], (8, 8, 1, 1), "3 loaders more made there")
            for how in (
                "model.load_state_dict(start)",
                "[value.data.copy_(start[name]) for name, value in model.named_parameters()]",
                "model.apply(torch.nn.Linear.reset_parameters)",
            )
        ),
        (HEALTHY_FOLDS.replace("{put_back}", ""), ["HR614"], (8, 8, 1, 1), "3 loaders more made there"),
    ],
    ids=["sampler", "seed", "healthy", "sweep", "loaded", "copied", "drawn again", "one model for all folds"],
)
def test_a_script_is_judged_over_all_its_epochs(scripts, ending, codes, expected, told):
    ended = scripts.reported(scripts.write(textwrap.dedent(SCRIPT) + textwrap.dedent(ending)))
    assert ended.status == 0 or codes
    assert ended.codes == codes
    loop = ended.loop
    found = (ended.report["target"]["watch"]["num_loaders"], loop["num_batches"], loop["num_passes"], loop["num_made"])
    assert found == expected
    assert told in " ".join(render_summary(ended.report["target"]).split())
    assert (loop["epoch_gap_s"] is None) == (loop["num_passes"] == 1)
