"""ArraySource passes the exam in every form, and refuses arrays that are no rows of samples."""

import pickle

import numpy as np
import pytest
import torch

from headrace.engine.source import ArraySource
from headrace.errors import ConfigurationError
from headrace.testing.sources import SourceSuite, is_equal

IMAGES = np.arange(5 * 2 * 3, dtype=np.float32).reshape(5, 2, 3)
LABELS = np.array([1, 0, 2, 0, 1])


class TestFieldsByName(SourceSuite):
    @pytest.fixture
    def source(self):
        return ArraySource(image=IMAGES, label=LABELS.tolist(), name=["a", "b", "c", "d", "e"])

    @pytest.fixture
    def expected(self):
        return {i: {"image": IMAGES[i], "label": LABELS[i], "name": "abcde"[i]} for i in range(5)}


class TestOneMappingWithIds(SourceSuite):
    @pytest.fixture
    def source(self):
        return ArraySource({"image": torch.from_numpy(IMAGES)}, ids=["e", "d", "c", "b", "a"])

    @pytest.fixture
    def expected(self):
        return {"edcba"[i]: {"image": torch.from_numpy(IMAGES[i])} for i in range(5)}


class TestOneArrayByPlace(SourceSuite):
    @pytest.fixture
    def source(self):
        return ArraySource(IMAGES, ids=np.array([10, 11, 12, 14, 13]))

    @pytest.fixture
    def expected(self):
        return dict(zip([10, 11, 12, 14, 13], IMAGES, strict=True))


class TestSeveralArraysByPlace(SourceSuite):
    @pytest.fixture
    def source(self):
        return ArraySource(torch.from_numpy(IMAGES).bfloat16(), torch.from_numpy(LABELS))

    @pytest.fixture
    def expected(self):
        return {i: (torch.from_numpy(IMAGES[i]).bfloat16(), torch.tensor(LABELS[i])) for i in range(5)}


class TestMemoryMap(SourceSuite):
    @pytest.fixture
    def source(self, tmp_path):
        np.save(tmp_path / "images.npy", IMAGES)
        return ArraySource(np.load(tmp_path / "images.npy", mmap_mode="r"))

    @pytest.fixture
    def expected(self):
        return dict(enumerate(IMAGES))


def test_changing_a_row_does_not_change_the_data():
    for array in (np.zeros((3, 2)), torch.zeros(3, 2)):
        source = ArraySource(array)
        source.read_many([1])[0][:] = 7
        assert (source.read_many([1])[0] == 0).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_memory_map_travels_as_its_file_name(tmp_path, order):
    big = np.asarray(np.random.default_rng(0).random((4000, 10)), order=order)
    np.save(tmp_path / "big.npy", big)
    source = ArraySource(x=np.load(tmp_path / "big.npy", mmap_mode="r"))
    pickled = pickle.dumps(source)
    assert len(pickled) < 1000
    copied = pickle.loads(pickled)
    assert isinstance(copied.arrays["x"], np.memmap)
    assert copied == source
    assert is_equal(copied.read_many([3999])[0]["x"], big[3999])


def test_a_slice_of_a_memory_map_is_not_taken_for_the_whole(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10))
    source = ArraySource(np.load(tmp_path / "x.npy", mmap_mode="r")[5:])
    assert int(pickle.loads(pickle.dumps(source)).read_many([0])[0]) == 5


def test_changes_that_only_a_map_has_travel_too(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="c")  # copy on write: the file stays as it is
    mapped[0] = 9
    assert int(pickle.loads(pickle.dumps(ArraySource(mapped))).read_many([0])[0]) == 9


def test_fingerprint_sees_names_types_shapes_ids_and_sampled_rows():
    changed = IMAGES.copy()
    changed[-1, -1, -1] += 1
    sources = [
        ArraySource(x=IMAGES),
        ArraySource(y=IMAGES),
        ArraySource(IMAGES),
        ArraySource(x=IMAGES.astype(np.float64)),
        ArraySource(x=IMAGES.reshape(5, 3, 2)),
        ArraySource(x=IMAGES[:4]),
        ArraySource(x=changed),
        ArraySource(x=IMAGES, ids=range(1, 6)),
        ArraySource(x=IMAGES, ids=list("abcde")),
    ]
    assert len({source.fingerprint() for source in sources}) == len(sources)
    assert len(set(sources)) == len(sources)
    assert ArraySource(x=IMAGES.copy()).fingerprint() == sources[0].fingerprint()


def test_fingerprint_of_a_huge_array_reads_a_bounded_part(tmp_path):
    path = tmp_path / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte on paper; reading it would not end before the hang guard
    source = ArraySource(np.memmap(path, dtype=np.uint8, mode="r", shape=(1 << 10, 1 << 30)))
    assert len(source.fingerprint()) == 32


def test_is_a_value():
    with_nan = np.array([1.0, np.nan])
    assert ArraySource(x=with_nan) == ArraySource(x=with_nan.copy())
    assert ArraySource(torch.from_numpy(with_nan)) == ArraySource(torch.from_numpy(with_nan.copy()))
    assert ArraySource(x=with_nan) != ArraySource(x=torch.from_numpy(with_nan))
    assert ArraySource(x=[1, 2]) != ArraySource(x=[1, 3])
    assert ArraySource(x=[1, 2]) != [1, 2]
    assert repr(ArraySource(x=torch.zeros(2, 3))) == "ArraySource(2 rows: x float32[2, 3])"


def test_index_of_inverts_sample_id():
    for ids in (None, [5, 3, 9], ["x", "y", "z"]):
        source = ArraySource([7, 8, 9], ids=ids)
        assert [source.index_of(source.sample_id(row)) for row in range(3)] == [0, 1, 2]
        for unknown in ("w", 77):
            with pytest.raises(ValueError):
                source.index_of(unknown)


def test_no_rows_are_a_source_all_the_same():
    source = ArraySource(x=np.zeros((0, 3)))
    assert len(source) == 0
    assert source.read_many([]) == []
    assert source.fingerprint() != ArraySource(x=np.zeros((0, 4))).fingerprint()


@pytest.mark.parametrize("index", [3, -1])
def test_a_row_outside_is_an_index_error(index):
    with pytest.raises(IndexError, match=f"^row {index} of an array with 3 rows$"):
        ArraySource([1, 2, 3]).read_many([0, index])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ArraySource(), "^no arrays are given"),
        (lambda: ArraySource({}), "^no arrays are given"),
        (lambda: ArraySource(IMAGES, label=LABELS), "^arrays are given both by place and by name"),
        (lambda: ArraySource(image=IMAGES, label=[1]), "'image' has 5 rows, 'label' has 1\n"),
        (lambda: ArraySource(x=3), "^field 'x' has no rows: it is a single value"),
        (lambda: ArraySource(x=[[1], [1, 2]]), "^field 'x' cannot become an array: "),
        (lambda: ArraySource(x=np.array(["a", None])), r"^field 'x' holds Python objects \(dtype object\)"),
        (lambda: ArraySource([1, 2], ids=["a"]), "^1 ids are given for 2 rows"),
        (lambda: ArraySource([1, 2], ids=["a", 1]), "^ids are partly strings and partly numbers"),
        (lambda: ArraySource([1, 2, 3], ids=["a", "b", "a"]), "^id 'a' is given twice: for row 0 and for row 2\n"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()
