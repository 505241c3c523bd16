"""TokenSource passes the exam over arrays and files, and refuses what is no row of tokens."""

import pickle

import numpy as np
import pytest

import headrace as hr
from headrace.engine.plan import tokens
from headrace.engine.source import TokenSource
from headrace.errors import ConfigurationError, SourceError
from headrace.testing.sources import SourceSuite

ROW = np.arange(100, 123, dtype=np.uint16)
WINDOWS = {row: np.arange(100 + 3 * row, 105 + 3 * row) for row in range(7)}


class TestArray(SourceSuite):
    @pytest.fixture
    def source(self):
        return TokenSource(ROW, window=5, stride=3)

    @pytest.fixture
    def expected(self):
        return WINDOWS


class TestRawFile(TestArray):
    @pytest.fixture
    def source(self, tmp_path):
        ROW.astype(np.uint32).tofile(tmp_path / "tokens.bin")
        return TokenSource(tmp_path / "tokens.bin", window=5, stride=3, dtype="uint32")


class TestNumpyFile(TestArray):
    @pytest.fixture
    def source(self, tmp_path):
        np.save(tmp_path / "tokens.npy", ROW.astype(np.int32))
        return TokenSource(str(tmp_path / "tokens.npy"), window=5, stride=3)


class TestEverySecondToken(TestArray):
    @pytest.fixture
    def source(self):
        return TokenSource(np.repeat(ROW, 2)[::2], window=5, stride=3)


def test_windows_do_not_overlap_by_default():
    plan = tokens(ROW, window=5)
    assert [plan[row].tolist()[0] for row in range(len(plan))] == [100, 105, 110, 115]
    assert "3 tokens left out" in repr(plan)


def test_one_window_may_hold_all():
    assert len(tokens(ROW, window=23)) == 1
    assert len(tokens(ROW, window=1)) == 23


def test_a_file_travels_as_its_name(tmp_path):
    np.zeros(100_000, np.uint16).tofile(tmp_path / "tokens.bin")
    source = TokenSource(tmp_path / "tokens.bin", window=10)
    source.gather(np.arange(3))
    assert len(pickle.dumps(source)) < 2000


def test_the_fingerprint_sees_tokens_window_and_stride():
    other = ROW.copy()
    other[7] += 1
    sources = [tokens(ROW, window=5), tokens(ROW, window=4), tokens(ROW, window=5, stride=4), tokens(other, window=5)]
    assert len({plan.source.fingerprint() for plan in sources}) == len(sources)


def test_workers_resume_where_the_caller_stopped(tmp_path):
    np.random.default_rng(0).integers(0, 2**16, 1000, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    plan = tokens(tmp_path / "tokens.bin", window=9, stride=8)
    whole = [batch.tolist() for batch in hr.DataLoader(plan, batch_size=16, shuffle=True, seed=2)]
    loader = hr.DataLoader(plan, batch_size=16, shuffle=True, seed=2)
    next(iter(loader))
    resumed = hr.DataLoader(plan, batch_size=16, shuffle=True, seed=9, num_workers=1)
    resumed.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in resumed] == whole[1:]


@pytest.mark.parametrize(
    ("given", "options", "error", "words"),
    [
        (ROW, {"window": 0}, ConfigurationError, "window=0"),
        (ROW, {"window": 5, "stride": 0}, ConfigurationError, "stride=0"),
        (ROW, {"window": "5"}, ConfigurationError, "window='5'"),
        (ROW, {"window": 24}, SourceError, "23 tokens do not fill one window of 24"),
        (ROW.reshape(1, -1), {"window": 5}, ConfigurationError, r"shape \(1, 23\)"),
        (ROW.astype(float), {"window": 5}, ConfigurationError, "float64"),
        (ROW.astype(np.uint64), {"window": 5}, ConfigurationError, "uint64"),
        (ROW.astype(">u2"), {"window": 5}, ConfigurationError, "native"),
        ("nowhere.bin", {}, SourceError, "no such file"),
    ],
)
def test_no_tokens_are_refused(given, options, error, words):
    with pytest.raises(error, match=words):
        tokens(given, **options)


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("t.bin", b"", {}, "the file is empty"),
        ("t.bin", b"abc", {}, "3 bytes are not a whole number of uint16 tokens"),
        ("t.npy", b"no array", {}, "no complete .npy file"),
        ("t.bin", b"abcd", {"dtype": "tokens"}, "no type of integers"),
        ("t.bin", b"abcd", {"dtype": "float32"}, "float32"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path, name, content, options, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((SourceError, ConfigurationError), match=words):
        tokens(tmp_path / name, **options)
