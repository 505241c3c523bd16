"""SourceSuite: the exam for anyone's `Source`.

    class TestMySource(SourceSuite):
        @pytest.fixture
        def source(self, tmp_path):
            return MySource(tmp_path)

        @pytest.fixture
        def expected(self, tmp_path):
            return {"a.txt": b"...", "b.txt": b"..."}

`expected` holds identity and record of every row in order, made without the source: the exam must not believe what it
examines.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import random
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from headrace.engine.transform.global_generators import capture, moved_since
from headrace.protocols import SampleId, Source

__all__ = ["SourceSuite", "is_equal"]

MAX_FINGERPRINT_CHARS = 256
"""A fingerprint is part of every saved state, which stays under 1 KB."""


def is_equal(a: Any, b: Any) -> bool:
    """True if two records hold the same: containers part by part, arrays and tensors by type, shape and values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(is_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(is_equal, a, b))
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return all(is_equal(getattr(a, part.name), getattr(b, part.name)) for part in dataclasses.fields(a))
    if hasattr(a, "dtype") and hasattr(a, "shape"):
        return bool(a.dtype == b.dtype and a.shape == b.shape and (a == b).all())
    return bool(a == b)


class SourceSuite:
    """Subclass it in a test module; give the two fixtures; at least two rows make the exam worth sitting."""

    @pytest.fixture
    def source(self) -> Source:
        """The source under test; fresh for each test."""
        raise NotImplementedError("give a `source` fixture")

    @pytest.fixture
    def expected(self) -> Mapping[SampleId, Any]:
        """Identity -> record of every row, in order, made without the source."""
        raise NotImplementedError("give an `expected` fixture")

    def same(self, a: Any, b: Any) -> bool:
        """True if two records are equal; override it for records with a comparison of their own."""
        return is_equal(a, b)

    def test_satisfies_the_protocol(self, source: Source) -> None:
        """It has everything that `Source` asks for."""
        assert isinstance(source, Source)
        assert isinstance(source.runs_user_code, bool)

    def test_length_is_the_number_of_records(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """`len` counts the records."""
        assert len(source) == len(expected)

    def test_ids_come_in_the_expected_order(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """Row numbers stand for the same identities everywhere."""
        assert [source.sample_id(row) for row in range(len(source))] == list(expected)

    def test_ids_are_unique_and_fit_into_json(self, source: Source) -> None:
        """No two rows share an identity, and each is a plain int or str."""
        ids = [source.sample_id(row) for row in range(len(source))]
        assert len(set(ids)) == len(ids)
        # numpy integers would pass for ints everywhere but here and in the keys of random draws.
        assert all(type(sample_id) in {int, str} for sample_id in ids)
        assert json.loads(json.dumps(ids)) == ids

    def test_each_row_holds_its_record(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """A row read alone is its record."""
        for row, record in enumerate(expected.values()):
            (found,) = source.read_many([row])
            assert self.same(found, record), f"row {row}: {found!r} is not {record!r}"

    def test_many_rows_come_as_asked(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """`read_many` keeps the order of the indices, repeats included."""
        records = list(expected.values())
        rows = [*reversed(range(len(records))), *range(len(records)), 0, 0]  # backwards, forwards, twice in a row
        found = source.read_many(rows)
        assert len(found) == len(rows)
        assert all(self.same(record, records[row]) for record, row in zip(found, rows, strict=True))

    def test_no_rows_give_no_records(self, source: Source) -> None:
        """Nothing asked, nothing read."""
        assert len(source.read_many([])) == 0

    def test_rows_may_be_numpy_integers(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """Orders come as numpy arrays; identities stay plain."""
        rows: Any = np.arange(len(expected), dtype=np.int64)
        found = source.read_many(rows)
        assert all(map(self.same, found, expected.values()))
        assert [source.sample_id(row) for row in rows] == list(expected)
        assert all(type(source.sample_id(row)) in {int, str} for row in rows)

    def test_reading_again_gives_the_same(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """Reading changes neither the source nor records handed out before."""
        (record,) = source.read_many([0])
        kept = copy.deepcopy(record)
        source.read_many(list(range(len(expected))))
        # Before row 0 is read again, which would hide a record that is filled anew for each row.
        assert self.same(record, kept), "a record changed after it was handed out"
        (again,) = source.read_many([0])
        assert self.same(again, kept)

    def test_locate_is_text_or_none(self, source: Source) -> None:
        """`locate` answers for every row."""
        assert all(source.locate(row) is None or isinstance(source.locate(row), str) for row in range(len(source)))

    def test_fingerprint_is_short_and_stable(self, source: Source) -> None:
        """The fingerprint does not depend on what was read before."""
        before = source.fingerprint()
        source.read_many([0])
        assert isinstance(before, str)
        assert 0 < len(before) <= MAX_FINGERPRINT_CHARS
        assert source.fingerprint() == before

    def test_survives_pickling(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """A copy sent to another process is the same source."""
        copied: Source = pickle.loads(pickle.dumps(source))
        assert copied.fingerprint() == source.fingerprint()
        assert [copied.sample_id(row) for row in range(len(copied))] == list(expected)
        assert all(map(self.same, copied.read_many(list(range(len(expected)))), expected.values()))

    def test_own_code_leaves_global_generators_alone(self, source: Source) -> None:
        """A source that runs no user code draws from no global generator."""
        if source.runs_user_code:
            pytest.skip("reading runs user code, and says so")
        before = capture()
        source.read_many(list(range(len(source))))
        assert moved_since(before) == ()

    def test_threads_may_read_at_once(self, source: Source, expected: Mapping[SampleId, Any]) -> None:
        """A source that runs no user code may be read by several threads."""
        if source.runs_user_code:
            pytest.skip("reading runs user code, which may not be ready for threads")
        records = list(expected.values())
        wrong: list[int] = []
        start = threading.Barrier(4)

        def read(seed: int) -> None:
            rows = random.Random(seed).choices(range(len(records)), k=50)
            start.wait()
            found = source.read_many(rows)
            wrong.extend(row for row, record in zip(rows, found, strict=True) if not self.same(record, records[row]))

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
