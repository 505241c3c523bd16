"""Without a stage: what slept there sleeps no more, everything else still does, and what comes out has the same form."""

import io
import pathlib
import random
import sys
import time
import typing

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    get_worker_info,
)

from headrace.contract.view import flatten
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.accounting import Account
from headrace.doctor.timing.knock_out import without_stages

NUM = 48
BATCH = 5
"""The last batch is shorter."""
NAP_S = 0.02
TIMES = 3.0


class Pair(typing.NamedTuple):
    image: typing.Any
    label: int


class Napping(ImageFile.ImageFile):
    """A format that takes its time to be decoded, and holds one byte: the colour."""

    format = "NAP"
    nap_s = 0.0

    def _open(self):
        time.sleep(self.nap_s)
        if self.fp.read(3) != b"NAP":
            raise SyntaxError
        colour = self.fp.read(1)
        self._size, self._mode = (6, 4), "L"
        self.tile = [ImageFile._Tile("raw", (0, 0, 6, 4), 4, ("L", 0, 1))]
        del colour


Image.register_open(Napping.format, Napping, lambda prefix: prefix[:3] == b"NAP")


@pytest.fixture
def paths(tmp_path):
    """Eight pictures of that format."""
    made = []
    for number in range(8):
        path = tmp_path / f"{number}.nap"
        path.write_bytes(b"NAP" + bytes([number]) * 40)
        made.append(path)
    return made


class Pictures(Dataset):
    """All stages, one of which sleeps."""

    def __init__(self, paths, asleep=""):
        self.paths, self.asleep = paths, asleep
        self.transform = self.to_tensor

    def to_tensor(self, image):
        if self.asleep == "transform":
            time.sleep(NAP_S)
        return torch.from_numpy(np.asarray(image).copy())

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        if self.asleep == "dataset":
            time.sleep(NAP_S)
        image = Image.open(io.BytesIO(self.paths[index % 8].read_bytes()))
        return self.transform(image), index

    def collate(self, samples):
        if self.asleep == "collate":
            time.sleep(BATCH * NAP_S)
        images, labels = zip(*samples, strict=True)
        return {"image": torch.stack(images), "label": torch.tensor(labels)}

    def begin(self, worker):
        """What opens slowly and decodes slowly does so in workers only."""
        del worker
        if self.asleep == "decode":
            Napping.nap_s = NAP_S
        if self.asleep == "read":
            sys.addaudithook(
                lambda event, arguments: (
                    time.sleep(NAP_S) if event == "open" and str(arguments[0]).endswith(".nap") else None
                )
            )

    def loader(self, **options):
        return DataLoader(self, BATCH, num_workers=1, collate_fn=self.collate, worker_init_fn=self.begin, **options)


def forms(batches):
    """Names, types, dtypes and shapes, batch for batch."""
    return [
        [
            (name, type(value), getattr(value, "dtype", None), getattr(value, "shape", None))
            for name, value in flatten(batch)
        ]
        for batch in batches
    ]


def timed(loader):
    """Batches, and seconds from the fourth one, as the first few are made as ever, to the last one."""
    batches, times = [], []
    for batch in loader:
        batches.append(batch)
        times.append(time.monotonic())
    return batches, times[-1] - times[3]


def is_much_faster(twin, reference, reference_s):
    """True if it is in one of a few tries, as a busy machine makes any try slow; what comes out is always of one form."""
    for _ in range(3):
        batches, seconds = timed(twin)
        assert forms(batches) == forms(reference)
        if seconds < reference_s / TIMES:
            return True
    return False


def without(loader, *stages, bench):
    return without_stages(Subject(loader), loader, stages, bench)


ASLEEP = {
    "dataset": {("sample",)},
    "transform": {("sample",), ("transform",)},
    "decode": {("sample",), ("decode",), ("read", "decode")},
    "read": {("sample",), ("read",), ("read", "decode")},
    "collate": {("collate",)},
}
EVERY = [("sample",), ("transform",), ("decode",), ("read",), ("read", "decode"), ("collate",), ("handover",)]


@pytest.mark.parametrize("asleep", ASLEEP)
def test_only_the_stage_that_sleeps_makes_it_faster(paths, bench, asleep):
    loader = Pictures(paths, asleep).loader()
    reference, reference_s = timed(loader)
    for stages in EVERY:
        twin = without(loader, *stages, bench=bench)
        if stages in ASLEEP[asleep]:
            assert is_much_faster(twin, reference, reference_s), stages
        else:  # it sleeps still, so it cannot be
            batches, seconds = timed(twin)
            assert forms(batches) == forms(reference), stages
            assert seconds > reference_s / TIMES, stages


def test_what_a_transform_gets_is_a_decoded_picture_still(paths, bench):
    loader = Pictures(paths).loader()
    for stages in (("decode",), ("read", "decode")):
        for batch in without(loader, *stages, bench=bench):
            for image in batch["image"]:
                assert (image == image[0, 0]).all()
                assert int(image[0, 0]) in range(8)


class Burden:
    """Takes its time to be sent, not to be made."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        time.sleep(BATCH * NAP_S)
        return Burden, (self.value,)


def burden(samples):
    return {"image": torch.stack([image for image, _ in samples]), "more": Burden(len(samples))}


@pytest.mark.parametrize("stages", [("handover",), ("sample",), ("collate",)])
def test_the_hand_over(paths, bench, stages):
    loader = DataLoader(Pictures(paths), BATCH, num_workers=1, collate_fn=burden)
    reference, reference_s = timed(loader)
    batches, seconds = timed(without(loader, *stages, bench=bench))
    assert forms(batches) == forms(reference)
    assert (seconds < reference_s / TIMES) == (stages == ("handover",))


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_that_are_no_forks(paths, bench, method):
    loader = DataLoader(Pictures(paths, "transform"), BATCH, num_workers=1, multiprocessing_context=method)
    reference, reference_s = timed(loader)
    assert is_much_faster(without(loader, "transform", bench=bench), reference, reference_s)


@pytest.mark.parametrize("stages", [("sample",), ("transform",), ("collate",)])
def test_in_the_loops_own_process(paths, bench, stages):
    asleep = "collate" if stages == ("collate",) else "transform"
    dataset = Pictures(paths, asleep)
    loader = DataLoader(dataset, BATCH, collate_fn=dataset.collate)
    reference, reference_s = timed(loader)
    assert is_much_faster(without(loader, *stages, bench=bench), reference, reference_s)


class Anything(Dataset):
    """Samples of any form, after a nap."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        time.sleep(NAP_S)
        return self.make(index)


class Together(Anything):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def ragged(index):
    return torch.arange(2 + index // 6)


FORMS = {
    "dict": lambda index: {"x": torch.zeros(3), "n": index, "s": str(index), "l": [1, 2.5]},
    "tuple": lambda index: (np.zeros((2, 3), np.float32), index),
    "list": lambda index: [torch.zeros(2, dtype=torch.int16), index / 2],
    "namedtuple": lambda index: Pair(torch.zeros(3, 2), index),
    "bare": lambda index: torch.tensor(index),
}


@pytest.mark.parametrize("kind", [Anything, Together, lambda make: Subset(Anything(make), range(NUM))])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("workers", [0, 1])
def test_samples_of_every_form(bench, kind, form, workers):
    loader = DataLoader(kind(FORMS[form]), BATCH, shuffle=True, num_workers=workers)
    reference = list(loader) if form == "dict" else [loader.collate_fn([FORMS[form](0)] * n) for n in (*[BATCH] * 9, 3)]
    batches, seconds = timed(without(loader, "sample", bench=bench))
    assert forms(batches) == forms(reference)
    assert seconds < NAP_S * BATCH * 6 / TIMES


def test_lengths_of_ragged_samples_follow_the_row_and_vary(bench):
    loader = DataLoader(Anything(ragged), 1, num_workers=1, collate_fn=lambda samples: samples[0])
    real = [len(ragged(index)) for index in range(NUM)]
    told = [len(batch) for batch in without(loader, "sample", bench=bench)]
    assert len(set(told)) > 3
    assert told == sorted(told)
    assert np.corrcoef(real, told)[0, 1] > 0.9


def spoil(samples):
    """A collate function that changes what it is given."""
    for sample in samples:
        sample["x"] += 1
        sample["x"].unsqueeze_(0)
        sample.pop("n")
        sample["l"].append(0)
    return {"x": torch.stack([sample["x"] for sample in samples]), "l": [sample["l"] for sample in samples]}


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_collate_function_changes_is_as_new_for_the_next_batch(bench, workers):
    loader = DataLoader(Anything(lambda _: {"x": torch.zeros(3), "n": 1, "l": [1]}), BATCH, num_workers=workers)
    loader.collate_fn = spoil
    for batch in without(loader, "sample", bench=bench):
        assert batch["x"].shape[1:] == (1, 3)
        assert (batch["x"] == 1).all()
        assert all(one == [1, 0] for one in batch["l"])


def test_samples_that_are_handed_on_unjoined_do_not_share_memory(bench):
    loader = DataLoader(Anything(lambda _: torch.zeros(3)), BATCH, num_workers=1, collate_fn=list)
    for batch in without(loader, "sample", bench=bench):
        for sample in batch:
            assert (sample == 0).all()
            sample += 1


class Stream(IterableDataset):
    def __init__(self, length=None):
        self.length = length
        self.transform = self.double

    def double(self, number):
        time.sleep(NAP_S)
        return torch.tensor([2 * number, 0])

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, NUM, step):
            yield self.transform(number)


class LongStream(Stream):
    def __len__(self):
        return NUM


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [BATCH, None])
@pytest.mark.parametrize("stages", [("transform",), ("sample",)])
def test_streams_of_known_length(bench, workers, batch_size, stages):
    loader = DataLoader(LongStream(), batch_size, num_workers=workers)
    reference, reference_s = timed(loader)
    batches, seconds = timed(without(loader, *stages, bench=bench))
    assert sorted(map(str, forms(batches))) == sorted(map(str, forms(reference)))
    assert seconds < reference_s / TIMES


def test_a_stream_of_unknown_length_goes_on(bench):
    twin = iter(without(DataLoader(Stream(), BATCH), "sample", bench=bench))
    assert [next(twin).shape for _ in range(2 * NUM)] == [(BATCH, 2)] * (2 * NUM)


@pytest.mark.parametrize("stages", [("handover",), ("collate",), ("handover", "collate")])
def test_the_last_batch_of_a_stream_is_as_short_as_it_was(bench, stages):
    loader = DataLoader(LongStream(), 20, num_workers=1)
    assert [len(batch) for batch in without(loader, *stages, bench=bench)] == [20, 20, 8]


def test_a_data_set_that_is_asked_for_whole_batches(bench):
    class Rows(Anything):
        def __getitem__(self, index):
            time.sleep(NAP_S * len(index))
            return torch.tensor(index)

    sampler = BatchSampler(SequentialSampler(range(NUM)), BATCH, drop_last=False)
    loader = DataLoader(Rows(None), None, sampler=sampler, num_workers=1)
    reference, reference_s = timed(loader)
    assert is_much_faster(without(loader, "sample", bench=bench), reference, reference_s)


def test_the_users_loader_and_its_generators_are_as_they_were(paths, bench):
    generator = torch.Generator().manual_seed(5)
    loader = DataLoader(Pictures(paths), BATCH, shuffle=True, num_workers=1, generator=generator)
    before, seen = dict(vars(loader)), dict(vars(loader.dataset))
    states = generator.get_state(), torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    for stages in EVERY:
        without(loader, *stages, bench=bench)
    assert dict(vars(loader)) == before
    assert dict(vars(loader.dataset)) == seen
    assert torch.equal(generator.get_state(), states[0])
    assert torch.equal(torch.get_rng_state(), states[1])
    assert random.getstate() == states[2]
    assert np.random.get_state()[1].tolist() == states[3]


class Marked(Dataset):
    """Complete only after worker_init_fn, which finds the data set where torch says it is."""

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        return torch.full((2,), self.mark)


def mark(worker):
    dataset = get_worker_info().dataset
    assert type(dataset) is Marked
    dataset.mark = worker


def test_worker_init_fn_finds_the_users_data_set(bench):
    loader = DataLoader(Marked(), BATCH, num_workers=1, worker_init_fn=mark)
    assert forms(without(loader, "sample", bench=bench)) == forms(loader)


def test_what_cannot_be_done_is_said(paths, bench):
    numbers = Anything(FORMS["bare"])
    for loader, stage, reason in (
        (DataLoader(numbers, 4), "handover", "without workers nothing"),
        (DataLoader(numbers, 4), "transform", "keeps no transform"),
        (DataLoader(numbers, 4, num_workers=1), "decode", "nothing that reads or decodes"),
        (DataLoader(numbers, 4, num_workers=1), "read", "opens no file"),
        (DataLoader(Pictures(paths), 4), "decode", "nobody listens"),
        (DataLoader(numbers, None), "collate", "joins nothing"),
        (DataLoader(numbers, 4), "transfer", "no stage of the loader"),
        ([torch.zeros(4, 1)], "sample", "the loaders of torch and headrace can"),
        (DataLoader(Anything(lambda _: 1 / 0), 4, num_workers=1), "sample", "ZeroDivisionError"),
    ):
        with pytest.raises(CannotExamine, match=reason):
            without(loader, stage, bench=bench)


class Parts(Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        if self.file is None:
            self.file = np.load(self.path)
        return torch.from_numpy(self.file["x"])[index]


def test_reading_parts_of_an_open_file_is_one_with_decoding(tmp_path, bench):
    path = pathlib.Path(tmp_path, "all.npz")
    np.savez(path, x=np.arange(2 * NUM).reshape(NUM, 2))
    loader = DataLoader(Parts(path), BATCH, num_workers=1)
    with pytest.raises(CannotExamine, match="reading and decoding are one"):
        without(loader, "decode", bench=bench)
    assert loader.dataset.file is None
    assert forms(without(loader, "read", "decode", bench=bench)) == forms(loader)


def test_a_sample_that_fails_is_not_missed(bench):
    def fails_at_first(index):
        if index == 0:
            raise KeyError("no such row")
        return torch.tensor([index])

    loader = DataLoader(Anything(fails_at_first), BATCH, num_workers=1, sampler=range(NUM))
    assert len(list(without(loader, "sample", bench=bench))) == 10


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stages", [("sample",), ("transform",), ("collate",)])
def test_an_account_of_a_loader_without_a_stage(paths, bench, tmp_path, workers, stages):
    asleep = "collate" if stages == ("collate",) else "transform"
    dataset = Pictures(paths, asleep)
    loader = DataLoader(dataset, BATCH, collate_fn=dataset.collate, num_workers=workers)
    kept = Account(tmp_path / "notes")
    for _ in range(2):
        twin = kept.wrap(Subject(loader), without(loader, *stages, bench=bench))
    assert len(list(twin)) == 10
    for use in kept.read()[0]:
        assert use.wall_s / use.num_samples < NAP_S / TIMES or use.stage == stages[0] == "collate"
