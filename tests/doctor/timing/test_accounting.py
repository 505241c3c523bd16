"""The account of a loader: what sleeps is in its stage, what comes out is what the loader gives, batch for batch."""

import io
import random
import time

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    get_worker_info,
)

from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.accounting import Account

NUM = 24
NAP_S = 0.02


def nap(image):
    time.sleep(NAP_S)
    return torch.from_numpy(np.asarray(image).copy())


class Pictures(Dataset):
    """Reads bytes, decodes them, and has a transform that sleeps."""

    def __init__(self, folder):
        self.paths = []
        for number in range(4):
            path = folder / f"{number}.png"
            pixels = np.random.default_rng(number).integers(0, 255, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path)
            self.paths.append(path)
        self.transform = nap

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        content = self.paths[index % 4].read_bytes()
        return self.transform(Image.open(io.BytesIO(content)).convert("RGB")), index, random.random()


class Numbers(Dataset):
    """Nothing to be heard."""

    def __init__(self, nap_s=NAP_S, slow=None):
        self.nap_s, self.slow = nap_s, slow

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        time.sleep(20 * NAP_S if index == self.slow else self.nap_s)
        return torch.tensor([index])


class Together(Numbers):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Stream(IterableDataset):
    def __init__(self, num=NUM):
        self.num = num

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, self.num, step):
            time.sleep(NAP_S / 4)
            yield torch.tensor([number])


def slow_collate(samples):
    time.sleep(NAP_S)
    return torch.stack(samples)


def account(loader, folder, passes=1):
    """What came out of each pass, the stages by name, and the batches."""
    kept = Account(folder)
    twin = kept.wrap(Subject(loader), loader)
    delivered = [list(twin) for _ in range(passes)]
    uses, made = kept.read()
    return delivered, {one.stage: one for one in uses}, made


def per_sample_s(use):
    return use.wall_s / use.num_samples


@pytest.mark.parametrize(("workers", "method"), [(1, "fork"), (2, "fork"), (1, "spawn"), (1, "forkserver")])
def test_each_sleep_is_found_in_its_stage_however_workers_are_started(tmp_path, workers, method):
    dataset = Pictures(tmp_path)
    loader = DataLoader(dataset, 4, num_workers=workers, multiprocessing_context=method, collate_fn=join_slowly)
    _, uses, _ = account(loader, tmp_path / "notes")
    assert per_sample_s(uses["transform"]) >= NAP_S
    assert uses["transform"].cpu_s < uses["transform"].wall_s / 2
    assert uses["collate"].wall_s >= uses["collate"].num_samples / 4 * NAP_S
    for quick in ("read", "decode"):
        assert per_sample_s(uses[quick]) < NAP_S
    assert uses["decode"].wall_s > 0
    assert "sample" not in uses
    sizes = [path.stat().st_size for path in dataset.paths]
    read = uses["read"].num_bytes / uses["read"].num_samples
    assert min(sizes) <= read <= 2 * max(sizes)
    assert uses["read"].num_requests >= uses["read"].num_samples
    assert uses["handover"].num_servers == 1
    assert uses["transform"].num_servers == workers


def join_slowly(samples):
    time.sleep(NAP_S)
    return torch.stack([image for image, _, _ in samples])


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_delivered_and_drawn_is_the_loaders_own(tmp_path, workers):
    dataset = Pictures(tmp_path)

    def walk(wrap):
        torch.manual_seed(7)
        random.seed(7)
        loader = DataLoader(dataset, 5, shuffle=True, num_workers=workers)
        return [[value.tolist() for value in batch] for batch in wrap(loader)]

    kept = Account(tmp_path / "notes")
    seen = walk(lambda loader: kept.wrap(Subject(loader), loader))
    assert seen == walk(lambda loader: loader)
    assert dataset.transform is nap
    assert vars(dataset).keys() == {"paths", "transform"}


def test_the_users_loader_is_as_it_was(tmp_path):
    loader = DataLoader(Numbers(0), 4, num_workers=1, persistent_workers=True)
    before, kind = dict(vars(loader)), type(loader)
    twin = Account(tmp_path).wrap(Subject(loader), loader)
    assert isinstance(twin, DataLoader)
    assert len(list(twin)) == len(list(loader)) == 6
    after = dict(vars(loader))
    after["_iterator"] = None
    assert after == before
    assert type(loader) is kind


@pytest.mark.parametrize("make", [Numbers, Together, lambda: Subset(Numbers(), range(NUM))])
@pytest.mark.parametrize("workers", [0, 1])
def test_without_anything_heard_it_is_all_sample(tmp_path, make, workers):
    _, uses, made = account(DataLoader(make(), 4, num_workers=workers), tmp_path)
    assert per_sample_s(uses["sample"]) >= NAP_S
    assert uses.keys() == {"sample", "collate"} | ({"handover"} if workers else set())
    assert bool(made) == bool(workers)


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_of_several_passes_are_in_the_order_of_delivery(tmp_path, persistent):
    loader = DataLoader(Numbers(0.001), 5, num_workers=2, persistent_workers=persistent)
    delivered, uses, made = account(loader, tmp_path, passes=3)
    assert [one.batch for one in made] == list(range(sum(map(len, delivered)))) == list(range(15))
    assert [one.worker for one in made] == [0, 1, 0, 1, 0] * 3
    for one in made:
        assert one.began_s <= one.fetched_s <= one.made_s
    num_workers_started = 2 if persistent else 6
    left_out = 5 * num_workers_started if 15 >= 2 * num_workers_started else 0
    assert uses["sample"].num_samples == 3 * NUM - left_out


def test_a_pass_that_is_broken_off_leaves_the_next_one_right(tmp_path):
    loader = DataLoader(Numbers(0.001), 2, num_workers=2, persistent_workers=True)
    kept = Account(tmp_path)
    twin = kept.wrap(Subject(loader), loader)
    for number, _ in enumerate(twin):
        if number == 2:
            break
    assert len(list(twin)) == 12
    _, made = kept.read()
    assert [one.batch for one in made] == list(range(15))
    assert [one.worker for one in made] == [0, 1, 0] + [0, 1] * 6


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [4, None])
def test_streams(tmp_path, workers, batch_size):
    loader = DataLoader(Stream(), batch_size, num_workers=workers)
    (delivered,), uses, made = account(loader, tmp_path)
    assert sorted(int(number) for batch in delivered for number in batch.flatten()) == list(range(NUM))
    assert per_sample_s(uses["sample"]) >= NAP_S / 4
    assert len(made) == (len(delivered) if workers else 0)


def test_a_sampler_that_yields_batches_counts_samples(tmp_path):
    class Rows(Numbers):
        def __getitem__(self, index):
            return torch.tensor(index)

    sampler = BatchSampler(SequentialSampler(range(NUM)), 4, drop_last=False)
    _, uses, _ = account(DataLoader(Rows(), None, sampler=sampler), tmp_path)
    assert uses["sample"].num_samples == NUM - 4  # without the first batch


def test_the_slowest_sample_is_told(tmp_path):
    _, _, made = account(DataLoader(Numbers(0.001, slow=9), 4, num_workers=1), tmp_path)
    slowest = max(made, key=lambda one: one.slowest_sample_s)
    assert slowest.batch == 2
    assert slowest.slowest_sample_s >= 20 * NAP_S


def test_samples_that_fail_fail_as_ever_and_are_not_delivered(tmp_path):
    class Fails(Numbers):
        def __getitem__(self, index):
            if index == 5:
                raise KeyError("no such row")
            return torch.tensor([index])

    loader = DataLoader(Fails(), 4, num_workers=2)
    kept = Account(tmp_path)
    walk = iter(kept.wrap(Subject(loader), loader))
    outcomes = []
    for _ in range(6):
        try:
            outcomes.append(next(walk).flatten().tolist())
        except KeyError:
            outcomes.append(None)
    assert outcomes == [[0, 1, 2, 3], None, *([first, first + 1, first + 2, first + 3] for first in range(8, NUM, 4))]
    assert len(kept.read()[1]) == 5
    walk._shutdown_workers()


def test_what_cannot_be_looked_into_says_why(tmp_path):
    batches = [torch.zeros(4, 1)] * 3
    with pytest.raises(
        CannotExamine, match="cannot be looked into while it works; the loaders of torch and headrace can"
    ):
        Account(tmp_path).wrap(Subject(batches), batches)

    class Other(DataLoader):
        def _get_iterator(self):
            return super()._get_iterator()

    other = Other(Numbers(0), 4)
    with pytest.raises(CannotExamine, match="a way of its own"):
        Account(tmp_path).wrap(Subject(other), other)
    with pytest.raises(CannotExamine, match="no loader"):
        Account(tmp_path).read()


def test_workers_that_were_there_before_are_not_seen_and_that_is_said(tmp_path):
    class Endless(DataLoader):
        """As some training scripts do: the workers of the first iterator live on."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            object.__setattr__(self, "held", super().__iter__())

        def __iter__(self):
            for _ in range(2):
                yield next(self.held)

    loader = Endless(Numbers(0), 4, num_workers=1)
    kept = Account(tmp_path)
    list(kept.wrap(Subject(loader), loader))
    with pytest.raises(CannotExamine, match="not started by the walk"):
        kept.read()
    loader.held._shutdown_workers()


@pytest.mark.parametrize("workers", [0, 1])
def test_awake_lies_between_computing_and_the_wall(tmp_path, workers):
    _, uses, _ = account(DataLoader(Numbers(), 4, num_workers=workers), tmp_path)
    for stage in uses.keys() - {"handover"}:
        use = uses[stage]
        if use.awake_s is not None:  # not Linux
            assert use.cpu_s <= use.awake_s <= max(use.wall_s, use.cpu_s) + 1e-9
    assert uses["sample"].awake_s is None or uses["sample"].awake_s < uses["sample"].wall_s / 2
