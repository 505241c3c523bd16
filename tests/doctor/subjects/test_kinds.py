"""Each kind says what it is, walks as its user does, and comes again with another number of workers, or says why not."""

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, IterableDataset, SequentialSampler, Subset

import headrace as hr
from headrace.doctor.subject import CannotExamine, Subject
from headrace.errors import HeadraceError

# What the libraries do with files and with their own past is theirs.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),  # torchdata under torch 2.13
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REASONS = {"index", "join", "workers", "streams", "epochs", "pickle"}


class Rows(torch.utils.data.Dataset):
    def __init__(self, start=0, size=10):
        self.start, self.size = start, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.full((2,), float(self.start + index)), self.start + index


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield from (
            (torch.full((2,), float(i)), i) for i in range(info.id if info else 0, 10, info.num_workers if info else 1)
        )


class Graphs(DataLoader):
    def __init__(self, rows):
        super().__init__(
            rows, 4, collate_fn=lambda samples: {"number": torch.tensor([number for _, number in samples])}
        )


class Batches:
    batch_size = 4

    def __iter__(self):
        return iter([(np.zeros((size, 2)), np.arange(size)) for size in (4, 4, 2)])


class Sequence:
    def __len__(self):
        return 3

    def __getitem__(self, number):
        return np.arange(4) + 4 * number

    def on_epoch_end(self):
        pass


def webdataset(tmp_path):
    wds = pytest.importorskip("webdataset")
    paths = []
    for shard in range(2):
        paths.append(str(tmp_path / f"{shard}.tar"))
        with wds.TarWriter(paths[-1]) as sink:
            for i in range(shard * 5, shard * 5 + 5):
                sink.write({"__key__": f"k{i}", "x.npy": np.full(2, i, np.float32), "cls": i})
    data = wds.WebDataset(paths, shardshuffle=False).decode().to_tuple("x.npy", "cls").batched(4)
    return wds.WebLoader(data, batch_size=None)


def stateful(tmp_path):
    return pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader(Rows(), batch_size=4)


def nodes(tmp_path):
    tn = pytest.importorskip("torchdata.nodes")
    node = tn.Mapper(tn.IterableWrapper(range(10)), Rows().__getitem__)
    return tn.Loader(tn.Mapper(tn.Batcher(node, 4, drop_last=False), torch.utils.data.default_collate))


def accelerated(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    return accelerate.Accelerator(cpu=True).prepare(DataLoader(Rows(), batch_size=4))


def grain_loader(tmp_path):
    grain = pytest.importorskip("grain")
    sampler = grain.samplers.IndexSampler(10, shard_options=grain.sharding.NoSharding(), num_epochs=1, seed=0)
    source = [(np.full(2, i, np.float32), i) for i in range(10)]
    return grain.DataLoader(data_source=source, sampler=sampler, operations=[grain.transforms.Batch(4)], worker_count=0)


def tensors(tmp_path):
    tf = pytest.importorskip("tensorflow")
    return tf.data.Dataset.from_tensor_slices((np.zeros((10, 2), "float32"), np.arange(10))).batch(4)


WITH_WORKERS = {
    "torch": lambda _: DataLoader(Rows(), batch_size=4),
    "torch-batch-sampler": lambda _: DataLoader(
        Rows(), batch_sampler=BatchSampler(SequentialSampler(range(10)), 4, False)
    ),
    "torch-nested": lambda _: DataLoader(ConcatDataset([Subset(Rows(), range(5)), Rows(5, 5)]), batch_size=4),
    "torch-single": lambda _: DataLoader(Rows(), batch_size=None),
    "torch-subclass": lambda _: Graphs(Rows()),
    "torch-stream": lambda _: DataLoader(Stream(), batch_size=4),
    "headrace": lambda _: hr.DataLoader(Rows(), batch_size=4),
    "headrace-shuffled": lambda _: hr.DataLoader(hr.arrays(x=np.arange(10)), batch_size=4, seed=3, shuffle=True),
    "stateful": stateful,
    "accelerate": accelerated,
    "webdataset": webdataset,
    "grain": grain_loader,
}
WITHOUT = {
    "map": lambda _: Rows(),
    "stream": lambda _: Stream(),
    "iterable": lambda _: Batches(),
    "sequence": lambda _: Sequence(),
    "nodes": nodes,
    "tensorflow": tensors,
}


def numbers(passed):
    """Everything a pass delivers, as one multiset of numbers."""
    leaves = []

    def add(value):
        if isinstance(value, dict):
            [add(part) for part in value.values()]
        elif isinstance(value, (list, tuple)):
            [add(part) for part in value]
        else:
            leaves.extend(np.asarray(value).ravel().tolist())

    add(list(passed))
    return sorted(leaves)


@pytest.mark.slow
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in WITH_WORKERS.items()])
def test_another_number_of_workers_delivers_the_same(make, tmp_path):
    target = make(tmp_path)
    subject = Subject(target)
    assert "workers" not in subject.cannot
    assert set(subject.cannot) <= REASONS
    own = numbers(subject.epoch())
    assert own == numbers(subject.with_workers(0)) == numbers(target)
    again = subject.with_workers(2)
    assert [numbers(again), numbers(again)] == [own, own]
    assert Subject(again).num_workers == 2
    assert subject.num_workers == 0


@pytest.mark.slow
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in WITHOUT.items()])
def test_a_kind_without_workers_says_why(make, tmp_path):
    subject = Subject(make(tmp_path))
    with pytest.raises(CannotExamine) as caught:
        subject.with_workers(2)
    assert isinstance(caught.value, HeadraceError)
    assert caught.value.what == subject.cannot["workers"]
    assert set(subject.cannot) <= REASONS
    assert len(subject.cannot["workers"].split()) > 5
    if subject.is_iterable:
        with pytest.raises(CannotExamine):
            subject.read(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=name) for name, make in {**WITH_WORKERS, **WITHOUT}.items() if name != "headrace-shuffled"],
)
def test_sample_by_sample_is_the_same_data_as_in_batches(make, tmp_path):
    subject = Subject(make(tmp_path))
    walk = subject.samples()
    samples, keys = [], []
    for sample in walk:
        samples.append(sample)
        keys.append(walk.key)
    assert len(samples) == (12 if isinstance(subject.dataset, Sequence) else 10)
    assert len(set(keys)) == len(keys)
    if make is not WITH_WORKERS["torch-subclass"]:  # its collate function leaves a field out
        assert numbers(samples) == numbers(subject.epoch())


def test_a_key_names_a_sample_behind_a_tuple(tmp_path):
    walk = Subject(webdataset(tmp_path)).samples()
    next(walk)
    next(walk)
    assert (walk.key, walk.path) == ("k1", str(tmp_path / "0.tar"))


def test_samples_of_a_pipeline_are_counted_once_whatever_its_epoch(tmp_path):
    pipeline = Subject(webdataset(tmp_path)).dataset
    assert len(list(Subject(pipeline.shuffle(3).with_epoch(2)).samples())) == 10


def test_a_torch_data_set_with_a_hook_of_kerass_has_samples():
    class Hooked(Rows):
        def on_epoch_end(self):
            pass

    assert not Subject(Hooked()).is_batched
    assert Subject(Sequence()).is_batched


def test_batches_and_samples_are_told_apart(tmp_path):
    assert Subject(DataLoader(Rows(), batch_size=4)).is_batched
    assert not Subject(DataLoader(Rows(), batch_size=None)).is_batched
    assert not Subject(Rows()).is_batched
    assert Subject(webdataset(tmp_path)).is_batched
    assert Subject(Batches()).batch_size == 4


class Prefetcher:
    """Stands for a loader, as timm's does: its batches, its data set, its length."""

    def __init__(self, loader, shown=None):
        self.loader, self.dataset = loader, shown or loader.dataset

    def __iter__(self):
        for values, numbers in self.loader:
            yield values / 255, numbers

    def __len__(self):
        return len(self.loader)


def test_a_wrapper_that_stands_for_a_loader_is_examined_as_the_loader():
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    subject = Subject(Prefetcher(loader))
    assert subject.loader is loader
    assert (subject.num_samples, subject.is_iterable, subject.is_batched) == (10, False, True)
    assert subject.kind.endswith("Prefetcher")


def test_an_object_that_only_uses_a_loader_is_examined_as_what_it_is():
    class Short(Prefetcher):
        def __len__(self):
            return 1

    assert Subject(Short(DataLoader(Rows(), batch_size=4))).loader is None
    assert Subject(Prefetcher(DataLoader(Rows(), batch_size=4), shown=Rows(100))).loader is None
