"""The experiments on real loaders: in this process where nothing is replaced, in a lab's child where modules are."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from headrace.doctor.evidence.orders import EpochCounts, Orders
from headrace.doctor.evidence.ranks import RankFailures, Ranks, RankSeeds
from headrace.doctor.evidence.splits import ClassMaps, SharedDataSets, SplitOverlap
from headrace.doctor.experiments.epochs import WalkStream
from headrace.doctor.experiments.orders import WalkSampler
from headrace.doctor.experiments.rank_processes import RunRanks
from headrace.doctor.experiments.ranks import PretendRanks
from headrace.doctor.experiments.splits import CompareSplits
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.probes.sources import EpochCall, Source
from headrace.doctor.rules.hr615_rank_failed import RankFailed
from headrace.doctor.subject import Subject

DATA = TensorDataset(torch.arange(60.0), torch.arange(60) // 15)


class Recorder:
    def begin(self, *_): ...

    def end(self): ...

    def note_stage(self, *_): ...

    def note_path(self, *_): ...


def found(experiment, target, *kinds):
    records = {type(one): one for one in experiment.run(target, Bench(Recorder()))}
    return [records[kind] for kind in kinds]


def walked(loader, source=None, role=None):
    experiment = WalkSampler(source=source or Source(), role=role, walk_s=30.0, seed=0)
    return found(experiment, Subject(loader), Orders, EpochCounts)


def streamed(dataset, source=None, **options):
    experiment = WalkStream(source=source or Source(), role=None, walk_s=30.0, seed=0)
    return found(experiment, Subject(DataLoader(dataset, **options)), Orders, EpochCounts)


def called(*path, is_constant=False):
    return Source(epoch_calls=(EpochCall(at="a.py:1", path=path, is_constant=is_constant, for_evaluation=False),))


def num_orders(seen):
    return len({one.order_hash for one in seen.passes})


def test_a_shuffling_loader_has_a_new_order_and_new_batches_each_epoch():
    seen, counts = walked(DataLoader(DATA, batch_size=7, shuffle=True))
    assert num_orders(seen) == len({one.batches_hash for one in seen.passes}) == 3
    assert not seen.is_sequential
    assert [one.num_batches for one in counts.single] == [9, 9, 9]
    assert counts.said_batches == 9
    assert seen.labels.num_labels == 4


def test_a_generator_that_was_seeded_once_goes_on_from_epoch_to_epoch():
    loader = DataLoader(DATA, batch_size=7, sampler=RandomSampler(DATA, generator=torch.Generator().manual_seed(0)))
    assert num_orders(walked(loader)[0]) == 3


def test_a_loader_that_does_not_shuffle_is_sequential():
    seen, _ = walked(DataLoader(DATA, batch_size=7))
    assert (seen.is_sequential, seen.displacement, seen.adjacency, num_orders(seen)) == (True, 0.0, 1.0, 1)
    assert seen.labels.mean_run == 15


@pytest.mark.parametrize(
    ("source", "orders", "told"),
    [
        (Source(), 1, False),
        (called("sampler"), 3, True),
        (called(), 3, True),
        (called("sampler", is_constant=True), 1, False),
    ],
)
def test_the_epoch_is_told_as_the_source_tells_it(source, orders, told):
    seen, _ = walked(DataLoader(DATA, batch_size=6, sampler=DistributedSampler(DATA, 2, 0)), source)
    assert (num_orders(seen), seen.epochs_told, seen.order_follows_epoch) == (orders, told, True)
    assert seen.set_epoch_of == "DistributedSampler"


def test_a_set_epoch_without_shuffling_changes_nothing():
    seen, _ = walked(DataLoader(DATA, batch_size=6, sampler=DistributedSampler(DATA, 2, 0, shuffle=False)))
    assert seen.order_follows_epoch is False


def test_weights_are_held_against_rows_and_classes():
    weights = torch.ones(60)
    weights[:15] = 0
    seen, _ = walked(DataLoader(DATA, batch_size=6, sampler=WeightedRandomSampler(weights, 40, replacement=False)))
    assert (seen.weights.num_weights, seen.weights.num_draws, seen.weights.replacement) == (60, 40, False)
    assert seen.weights.never_drawn == ("0",)
    assert seen.weights.num_labels == 4


def test_a_sampler_that_is_an_iterator_is_empty_the_second_time():
    _, counts = walked(DataLoader(DATA, batch_size=6, sampler=iter(range(60))))
    assert [one.num_samples for one in counts.single] == [60, 0, 0]


class Stream(IterableDataset):
    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return iter(self.make())


class Told(Stream):
    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(range(40))
        random.Random(self.epoch).shuffle(order)
        return iter(order)


def test_a_stream_is_counted_and_its_order_known_by_content():
    seen, counts = streamed(Stream(lambda: range(50)), batch_size=8)
    assert [one.num_samples for one in counts.single] == [50, 50]
    assert [one.num_batches for one in counts.single] == [7, 7]
    assert seen.is_sequential
    assert seen.displacement == 0.0


def test_a_stream_without_a_length_that_is_kept_is_exhausted():
    kept = (torch.tensor(i) for i in range(50))
    _, counts = streamed(Stream(lambda: kept), batch_size=8)
    assert [one.num_samples for one in counts.single] == [50, 0]


def test_an_endless_stream_is_left_at_the_limit():
    experiment = WalkStream(source=Source(), role=None, walk_s=0.01, seed=0)
    stream = DataLoader(Stream(itertools.count), batch_size=8)
    seen, counts = found(experiment, Subject(stream), Orders, EpochCounts)
    assert [one.is_complete for one in counts.single] == [False]
    assert not seen.is_sequential


def test_a_stream_that_shuffles_by_the_epoch_waits_for_it():
    seen, _ = streamed(Told(None), batch_size=8)
    assert (num_orders(seen), seen.order_follows_epoch, seen.set_epoch_of) == (1, True, "Told")
    seen, _ = streamed(Told(None), called("dataset"), batch_size=8)
    assert (num_orders(seen), seen.epochs_told) == (2, True)


def test_a_short_buffer_moves_samples_a_little_and_leaves_classes_together():
    def buffered():
        held = []
        for i in range(400):
            held.append((torch.tensor(float(i)), i // 100))
            if len(held) > 10:
                yield held.pop(random.randrange(len(held)))
        yield from held

    seen, _ = streamed(Stream(buffered), batch_size=20)
    assert seen.displacement < 0.05
    assert seen.labels.mean_run > 4 * seen.labels.random_run


def compared(**loaders):
    subjects = {name: Subject(loader) for name, loader in loaders.items()}
    for subject in subjects.values():
        subject.siblings = subjects
    experiment = CompareSplits(source=Source(), walk_s=30.0, seed=0)
    return found(experiment, next(iter(subjects.values())), SplitOverlap, ClassMaps, SharedDataSets)


def test_shared_rows_are_found_through_subsets_and_samplers():
    train = DataLoader(Subset(DATA, range(40)), batch_size=8, shuffle=True)
    overlap, _, shared = compared(train=train, val=DataLoader(DATA, batch_size=8, sampler=range(35, 50)))
    (pair,) = overlap.pairs
    assert (pair.num_shared, pair.num_evaluation, pair.first_ids, pair.by) == (5, 15, (35, 36, 37, 38, 39), "row")
    assert [(one.evaluation, one.num_random) for one in shared.shared] == [("val", 0)]


def test_disjoint_parts_of_several_data_sets_share_nothing():
    other = TensorDataset(torch.arange(10.0), torch.zeros(10))
    both = ConcatDataset([DATA, other])
    train = DataLoader(Subset(both, [*range(30), *range(60, 70)]), batch_size=8)
    overlap, _, _ = compared(train=train, val=DataLoader(Subset(DATA, range(30, 60)), batch_size=8))
    assert [pair.num_shared for pair in overlap.pairs] == [0]


def test_equal_contents_of_two_objects_are_found():
    copied = TensorDataset(DATA.tensors[0][20:35].clone(), DATA.tensors[1][20:35].clone())
    train = DataLoader(TensorDataset(*(one.clone() for one in DATA.tensors)), batch_size=8)
    overlap, _, shared = compared(train=train, val=DataLoader(copied, batch_size=8))
    (pair,) = overlap.pairs
    assert (pair.num_shared, pair.num_evaluation, pair.by) == (15, 15, "content")
    assert shared.shared == ()


class Computed(Dataset):
    def __init__(self, count):
        self.targets = [i % 3 for i in range(count)]

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return torch.full((2,), float(i)), self.targets[i]


def test_made_up_data_that_are_equal_at_equal_rows_may_be_meant_and_stored_data_not():
    overlap, _, _ = compared(train=DataLoader(Computed(50)), val=DataLoader(Computed(20)))
    assert [(pair.num_shared, pair.may_be_meant) for pair in overlap.pairs] == [(20, True)]
    first = TensorDataset(*(one[:20].clone() for one in DATA.tensors))
    overlap, _, _ = compared(train=DataLoader(DATA), val=DataLoader(first))
    assert [(pair.num_shared, pair.may_be_meant) for pair in overlap.pairs] == [(20, False)]


def test_records_that_are_equal_within_a_split_say_nothing_when_they_meet_across():
    left, right = (TensorDataset(torch.arange(60) % 4, torch.arange(60) % 2) for _ in range(2))
    overlap, _, _ = compared(train=DataLoader(left), val=DataLoader(right))
    assert overlap.pairs == ()


class Short(DataLoader):
    def __iter__(self):
        return itertools.islice(super().__iter__(), 3)


def test_a_loader_with_an_iteration_of_its_own_is_counted_as_it_is_walked():
    _, counts = walked(Short(DATA, batch_size=10))
    assert (counts.said_batches, [one.num_batches for one in counts.single]) == (6, [3, 3])


def test_a_property_that_raises_is_passed_over():
    class Odd(Computed):
        @property
        def labels(self):
            raise RuntimeError("not loaded")

    assert walked(DataLoader(Odd(30), batch_size=10))[0].labels.num_labels == 3


@pytest.mark.parametrize("name", ["train_score", "memory_bank", "second"])
def test_loaders_that_do_not_hold_samples_out_by_their_name_are_left_alone(name):
    overlap, _, shared = compared(train=DataLoader(DATA), **{name: DataLoader(DATA)})
    assert overlap.pairs == ()
    assert shared.shared == ()


class Noisy(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, i):
        return i + torch.rand(2)


def test_a_shared_data_set_that_draws_random_numbers_is_seen_by_its_reads():
    noisy = Noisy()
    parts = (DataLoader(Subset(noisy, part)) for part in (range(20), range(20, 30)))
    _, _, shared = compared(**dict(zip(("train", "val"), parts, strict=True)))
    (pair,) = shared.shared
    assert (pair.dataset_kind, pair.num_read, pair.num_random) == ("Noisy", 4, 4)


RANKED = """
import os, random
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler, Subset

class Numbers(Dataset):
    def __len__(self):
        return 41
    def __getitem__(self, i):
        return i + torch.rand(2)

def by_torch():
    data = Numbers()
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data, seed=3), num_workers=2)

def by_environment():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(5)
    return DataLoader(Subset(Numbers(), range(rank, 41, size)), batch_size=8, shuffle=True, num_workers=2)

def fixed():
    data = Numbers()
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data, num_replicas=4, rank=1, shuffle=False))
"""


def pretending(spec, world_size):
    return PretendRanks(
        spec=spec,
        split="",
        world_size=world_size,
        source=Source(),
        role=None,
        walk_s=30.0,
        max_streamed=100,
        seed=0,
    )


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    def run(name, world_size=2):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", "1")
        path = tmp_path / "ranked.py"
        path.write_text(f"{RANKED}\ndef make():\n    return {name}() if dist.is_initialized() else fixed()\n")
        experiment = pretending(f"{path}:make", world_size)
        records = []
        with Lab(f"{path}:make", budget=Budget(60.0), per_sample_s=30.0) as lab:
            ending = lab.run(experiment, records.append)
        assert ending.outcome == "done", ending
        kinds = {type(one): one for one in records}
        return kinds.get(Ranks), kinds.get(RankSeeds)

    return run


@pytest.mark.slow
def test_torchs_sampler_is_dealt_out_and_padded(pretend):
    ranks, seeds = pretend("by_torch", world_size=3)
    assert (ranks.how, ranks.deals_out, ranks.num_rows, ranks.num_union) == ("environment", True, 41, 41)
    assert [share.num_samples for share in ranks.shares] == [14, 14, 14]
    assert sum(share.num_samples for share in ranks.shares) - ranks.num_union == 1
    assert {(one.world_size, one.num_repeated) for one in ranks.paddings} == {(2, 1), (3, 1), (4, 3), (8, 7)}
    assert (seeds.num_read, seeds.num_random, seeds.num_equal) == (3, 3, 0)


@pytest.mark.slow
def test_subsets_made_by_the_environment_are_followed_to_their_rows(pretend):
    ranks, seeds = pretend("by_environment")
    assert ranks.overlap == ((21, 0), (0, 20))
    assert (ranks.num_rows, ranks.num_union, ranks.deals_out) == (41, 41, True)
    assert [share.num_batches for share in ranks.shares] == [3, 3]
    assert (seeds.num_random, seeds.num_equal, seeds.is_executed) == (3, 3, True)
    assert seeds.seeds[0] == seeds.seeds[1]


@pytest.mark.slow
def test_a_fixed_rank_is_replaced_in_a_copy_of_the_sampler(pretend):
    ranks, _ = pretend("fixed")
    assert (ranks.how, ranks.world_size, ranks.num_union) == ("attributes", 4, 41)
    assert [share.num_samples for share in ranks.shares] == [11, 11, 11, 11]


GROUPED = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

dist.init_process_group("gloo")
data = TensorDataset(torch.arange(41))

def by_torch():
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data))

def by_random_parts():
    order = torch.randperm(41)
    agreed = order.clone()
    dist.broadcast(agreed, src=0)  # a collective that is real: all ranks get what rank 0 drew
    return DataLoader(Subset(data, agreed[dist.get_rank()::dist.get_world_size()].tolist()), batch_size=8)

def raises_on_one():
    if dist.get_rank() == 1:
        raise LookupError("nothing for rank 1")
    dist.barrier()
    return by_torch()

def exits_on_one():
    if dist.get_rank() == 1:
        import os
        os._exit(3)
    dist.barrier()
    return by_torch()

def left_alone():
    if dist.get_rank() == 0 and dist.get_world_size() > 1:
        dist.barrier()
    return by_torch()
"""


@pytest.fixture
def as_processes(tmp_path):
    def run(name, world_size=2):
        path = tmp_path / "grouped.py"
        path.write_text(GROUPED)
        spec = f"{path}:{name}"
        plan = pretending(spec, world_size)
        records = []
        with Lab(spec, budget=Budget(90.0), per_sample_s=60.0) as lab:  # loaded for no rank first, as rank 0 of 1
            ending = lab.run(RunRanks(plan=plan, most_s=10.0), records.append)
        assert ending.outcome == "done", ending
        kinds = {type(one): one for one in records}
        return kinds[RankFailures], kinds.get(Ranks)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("name", "num_repeats"), [("by_torch", 1), ("by_random_parts", 0)])
def test_ranks_meet_in_one_group_and_draw_their_parts(as_processes, name, num_repeats):
    failures, ranks = as_processes(name, world_size=3)
    assert failures.failures == ()
    assert (ranks.how, ranks.deals_out, ranks.num_rows, ranks.num_union) == ("processes", True, 41, 41)
    assert sum(share.num_samples for share in ranks.shares) == 41 + num_repeats


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"), [("raises_on_one", "LookupError: nothing for rank 1"), ("exits_on_one", "its process ended")]
)
def test_the_rank_that_fails_is_named_and_not_those_that_wait_for_it(as_processes, name, said):
    failures, ranks = as_processes(name)
    assert ranks is None
    assert {one.rank: (one.is_waiting, one.error) for one in failures.failures}[1] == (False, said)
    assert {one.rank: one.is_waiting for one in failures.failures}[0]
    (finding,) = RankFailed().judge(failures)
    assert finding.message.startswith(f"rank 1 of 2 fails: {said}")


@pytest.mark.slow
def test_a_collective_that_others_do_not_call_is_named_with_its_line(as_processes):
    failures, _ = as_processes("left_alone")
    (waits,) = [one for one in failures.failures if one.is_waiting]
    assert waits.rank == 0
    assert waits.at.endswith("grouped.py:33 in left_alone")
