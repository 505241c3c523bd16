"""Batches copied out of the memory store are those of loading and collating, byte for byte; stamps are looked up, not made."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from cache_pupils import make_files
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import default_collate

import headrace as hr
from headrace.engine.cache import content, entry, gather
from headrace.engine.cache.content import FileStamps, file_stamp
from headrace.engine.cache.packing import Unpackable, pack
from headrace.engine.source.gathering import NotGathered

STAMPS = np.random.default_rng(0).integers(0, 256, (9, 16), dtype=np.uint8)


def leaves():
    """Makers of one leaf each: the same form for every row, other values."""
    return st.sampled_from(
        [
            lambda row: row,
            lambda row: row / 3,
            lambda row: True,
            lambda row: None,
            lambda row: "the same",
            lambda row: f"text {row}",
            lambda row: bytes([row] * 5),
            lambda row: bytes(row),
            lambda row: np.float32(row),
            lambda row: np.full((2, 3), row, np.int16),
            lambda row: np.full(row, 1.5),
            lambda row: np.full((40, 60), row, np.uint8),  # copied row by row
            lambda row: np.full((3,), row, np.uint64),
            lambda row: np.empty((2, 0)),
            lambda row: torch.full((4,), row, dtype=torch.bfloat16),
            lambda row: torch.full((2, 2), row % 2, dtype=torch.bool),
            lambda row: torch.full((50, 20, 2), row, dtype=torch.float32),
            lambda row: np.array(["ab", "c"]),
        ]
    )


samples = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda makers: lambda row: [make(row) for make in makers]),
        st.lists(inner, max_size=3).map(lambda makers: lambda row: tuple(make(row) for make in makers)),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda makers: lambda row: {name: make(row) for name, make in makers.items()}
        ),
    ),
    max_leaves=5,
)


def image(value):
    """Structure, types, and bytes."""
    if isinstance(value, dict):
        return "dict", [(name, image(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [image(part) for part in value]
    if isinstance(value, torch.Tensor):
        raw = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return value.dtype, tuple(value.shape), value.stride(), raw
    return type(value), value


@settings(max_examples=4 * settings.default.max_examples)
@given(make=samples, rows=st.lists(st.integers(0, 8), min_size=1, max_size=7))
def test_both_joins_are_collate_or_refuse(make, rows):
    made = [make(row) for row in range(9)]
    try:
        entries = [entry.encode(pack(sample), stamp.tobytes()) for sample, stamp in zip(made, STAMPS, strict=True)]
    except Unpackable:
        return
    places = np.cumsum([64, *(len(each) for each in entries[:-1])])
    data = np.concatenate([np.zeros(64, np.uint8), *entries, np.zeros(64, np.uint8)])
    try:
        expected = image(default_collate([made[row] for row in rows]))
    except Exception:
        expected = None
    wanted = np.array(rows)
    found = entry.alike(data, places[wanted], STAMPS[wanted])
    assert entry.alike(data, places[wanted], STAMPS[wanted] + np.uint8(1)) is None
    joins = [lambda: gather.join([entry.look(data[places[row] :], STAMPS[row].tobytes()) for row in rows])]
    if found is not None:
        joins.append(lambda: gather.join_alike(found[0], data, found[1]))
    for join in joins:
        try:
            batch = join()
        except NotGathered:
            continue
        assert image(batch) == expected


def pictures(record):
    number = int(Path(record.path).stem)
    return np.full((64, 64, 3), number, np.uint8), number


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "runner": "threads"}])
def test_pictures_are_gathered_and_equal(tmp_path, options):
    root = make_files(tmp_path, 24)
    plain = hr.folder(root).map(pictures)
    kept = plain.cache(max_bytes=10**6)
    time.sleep(0.06)  # younger files are not kept
    common = {"batch_size": 5, "shuffle": True, "seed": 2}
    loader, expected = hr.DataLoader(kept, **common, **options), hr.DataLoader(plain, **common)
    for _ in range(3):
        assert [image(list(batch)) for batch in loader] == [image(list(batch)) for batch in expected]
    assert [stage.stage for stage in loader.stats().stages] == ["read"]


def test_stamps_at_once_are_those_made_one_by_one(tmp_path, monkeypatch):
    root = make_files(tmp_path, 9)
    time.sleep(0.06)
    source = hr.folder(root).source
    stamps = FileStamps(source)
    rows = np.array([3, 0, 8, 3])

    def expected():
        return [file_stamp(source, int(row))[0] for row in rows]

    def found():
        return [stamp.tobytes() for stamp in stamps.of(rows)]

    assert found() == expected()
    before = expected()
    path = Path(source.locate(8))
    path.write_bytes(path.read_bytes())  # the same bytes at another time, and too young to be trusted
    assert found() == expected() != before
    time.sleep(0.06)
    os.utime(path, ns=(1, 1))
    assert found() == expected()
    time.sleep(0.06)
    assert found() == expected()
    # Nothing has changed since: no digest is made any more.
    known = expected()
    monkeypatch.setattr(content, "file_stamp", None)
    assert found() == known
    path.unlink()
    with pytest.raises(FileNotFoundError):
        stamps.of(rows)


def test_a_changed_file_is_loaded_anew_between_two_batches(tmp_path):
    root = make_files(tmp_path, 6)
    time.sleep(0.06)

    def decode(record):
        return np.frombuffer(record.data, np.uint8).copy()

    kept = hr.folder(root).map(decode).cache(max_bytes=10**6)
    loader = hr.DataLoader(kept, batch_size=6)
    for _ in range(3):
        (batch,) = loader
    Path(kept.locate(2)).write_bytes(bytes([7] * 40))
    for _ in range(3):
        (changed,) = loader
        assert changed[2].tolist() == [7] * 40
        assert torch.equal(changed[[0, 1, 3, 4, 5]], batch[[0, 1, 3, 4, 5]])
