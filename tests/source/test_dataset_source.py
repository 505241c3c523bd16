"""DatasetSource passes the exam over anyone's map-style data set, and finds out what it can without reading."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch.utils.data

from headrace.engine.source import DatasetSource
from headrace.errors import SourceError
from headrace.testing.sources import SourceSuite


class Squares:
    classes = ("even", "odd")

    def __init__(self, length=5):
        self.length = length
        self.asked = []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        assert type(index) is int  # data sets of old index lists of their own with it, and write it into JSON
        if index >= self.length:
            raise IndexError(index)
        self.asked.append(index)
        return {"x": np.array([index, index**2]), "label": index % 2}


class BatchedSquares(Squares):
    def __getitems__(self, indices):
        assert type(indices) is list
        return [Squares.__getitem__(self, index) for index in indices]

    def __getitem__(self, index):
        raise AssertionError("whole batches can be read")


EXPECTED = {i: {"x": np.array([i, i**2]), "label": i % 2} for i in range(5)}


class TestOneByOne(SourceSuite):
    @pytest.fixture
    def source(self):
        return DatasetSource(Squares())

    @pytest.fixture
    def expected(self):
        return EXPECTED


class TestBatched(SourceSuite):
    @pytest.fixture
    def source(self):
        return DatasetSource(BatchedSquares())

    @pytest.fixture
    def expected(self):
        return EXPECTED


class TestTorchSubset(SourceSuite):
    @pytest.fixture
    def source(self):
        return DatasetSource(torch.utils.data.Subset(Squares(), [3, 1, 4]))

    @pytest.fixture
    def expected(self):
        return dict(enumerate([EXPECTED[3], EXPECTED[1], EXPECTED[4]]))


class TestList(SourceSuite):
    @pytest.fixture
    def source(self):
        return DatasetSource(["a", "b", "c"])

    @pytest.fixture
    def expected(self):
        return {0: "a", 1: "b", 2: "c"}


def test_reads_what_is_asked_and_nothing_else():
    dataset = Squares()
    DatasetSource(dataset).read_many([4, 2, 4])
    assert dataset.asked == [4, 2, 4]
    assert DatasetSource(dataset).read_many(np.array([3]))[0]["label"] == 1


def test_batched_read_follows_torch():
    assert DatasetSource(BatchedSquares()).has_batched_read
    assert not DatasetSource(Squares()).has_batched_read
    switched_off = BatchedSquares()
    switched_off.__getitems__ = None  # how some wrappers say that they cannot
    assert not DatasetSource(switched_off).has_batched_read


@pytest.mark.parametrize(("answer", "found"), [([1], "1 records"), (iter([1, 2]), "list_iterator"), (None, "NoneType")])
def test_a_batched_read_that_miscounts_is_refused(answer, found):
    dataset = BatchedSquares()
    dataset.__getitems__ = lambda indices: answer
    with pytest.raises(SourceError, match=f"^__getitems__ of BatchedSquares returned {found} for 2 indices\n"):
        DatasetSource(dataset).read_many([0, 1])


@pytest.mark.parametrize("length", [-1, 2.5, None, "3"])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(SourceError, match=r"^len\(dataset\) of Squares fails: (ValueError|TypeError): ") as caught:
        DatasetSource(Squares(length))
    assert caught.value.__cause__ is not None


def test_classes_are_those_of_the_data_set():
    assert DatasetSource(Squares()).classes == ("even", "odd")
    assert DatasetSource(Squares()).num_classes == 2
    assert DatasetSource([1]).classes is None
    assert DatasetSource([1]).num_classes is None
    told = Squares()
    told.num_classes = 7
    assert DatasetSource(told).num_classes == 7


def test_is_as_equal_as_its_data_set():
    dataset = Squares()
    assert DatasetSource(dataset) == DatasetSource(dataset)
    assert hash(DatasetSource(dataset)) == hash(DatasetSource(dataset))
    assert DatasetSource(dataset) != DatasetSource(Squares())
    assert repr(DatasetSource(dataset)) == "DatasetSource(Squares, 5 samples)"


def test_index_of_is_the_row():
    source = DatasetSource(Squares())
    assert source.index_of(4) == 4
    for unknown in (5, -1, "4"):
        with pytest.raises(ValueError):
            source.index_of(unknown)


# locate


@pytest.mark.parametrize("name", ["samples", "imgs", "paths", "files", "image_paths", "filenames"])
@pytest.mark.parametrize(
    "row", [lambda i: f"{i}.png", lambda i: Path(f"{i}.png"), lambda i: (f"{i}.png", 0)], ids=["str", "Path", "pair"]
)
def test_locates_by_the_usual_attributes(name, row):
    dataset = Squares()
    setattr(dataset, name, [row(i) for i in range(5)])
    assert DatasetSource(dataset).locate(3) == "3.png"


def test_locates_through_torch_wrappers():
    first, second = Squares(), Squares(3)
    first.samples = [(f"first/{i}", 0) for i in range(5)]
    second.paths = [f"second/{i}" for i in range(3)]
    joined = torch.utils.data.ConcatDataset([first, torch.utils.data.Subset(second, torch.tensor([2, 0]))])
    part = torch.utils.data.Subset(joined, [6, 5, 4, 0])
    assert [DatasetSource(part).locate(i) for i in range(4)] == ["second/0", "second/2", "first/4", "first/0"]


def test_locate_never_raises_and_never_guesses():
    class Failing(Squares):
        @property
        def samples(self):
            raise RuntimeError("not loaded")

    other_length, numbers = Squares(), Squares()
    other_length.samples = ["classes.txt"]
    numbers.samples = [1, 2, 3, 4, 5]
    for dataset in (Failing(), other_length, numbers, [1, 2, 3]):
        assert DatasetSource(dataset).locate(0) is None


# fingerprint


def test_fingerprint_tells_data_sets_apart():
    hooked = [Squares(), Squares(), Squares()]
    hooked[0].fingerprint = lambda: "version 1"
    hooked[1].fingerprint = lambda: "version 2"
    hooked[2]._fingerprint = "a1b2c3"  # Hugging Face's
    split, other_split = (torch.utils.data.Subset(Squares(), rows) for rows in ([0, 1], [0, 2]))
    sources = [
        Squares(),
        Squares(4),
        BatchedSquares(),
        *hooked,
        split,
        other_split,
        torch.utils.data.ConcatDataset([Squares(4), Squares(1)]),
        torch.utils.data.ConcatDataset([Squares(3), Squares(2)]),
    ]
    prints = [DatasetSource(dataset).fingerprint() for dataset in sources]
    assert len(set(prints)) == len(prints)
    assert prints[0] == "Squares/5"


def test_fingerprint_survives_pickling():
    dataset = torch.utils.data.Subset(Squares(), [2, 1])
    source = DatasetSource(dataset)
    assert pickle.loads(pickle.dumps(source)).fingerprint() == source.fingerprint()
