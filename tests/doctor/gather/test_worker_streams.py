"""Repeats between workers are counted exactly where streams end, and never seen where there are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.probes.streams import CompareStreams, compare


def tagged(streams, keys=None):
    """The streams of several workers as a loader interleaves them."""
    longest = max(map(len, streams), default=0)
    return [
        (worker, stream[i], (keys or {}).get(stream[i]))
        for i in range(longest)
        for worker, stream in enumerate(streams)
        if i < len(stream)
    ]


contents = st.lists(st.text("abc", max_size=3), max_size=30)


@given(stream=contents, num_workers=st.integers(2, 4), by_blocks=st.booleans())
def test_a_shared_out_stream_has_no_repeats_however_often_its_content_occurs(stream, num_workers, by_blocks):
    size = -(-len(stream) // num_workers) or 1
    parts = [stream[w * size : (w + 1) * size] if by_blocks else stream[w::num_workers] for w in range(num_workers)]
    found = compare(stream, tagged(parts), num_workers=num_workers, is_complete=True)
    assert (found.num_duplicated, found.first_duplicate) == (0, None)
    assert sum(found.per_worker) == found.num_single == len(stream)


@given(stream=contents, num_workers=st.integers(2, 4))
def test_a_stream_that_every_worker_yields_is_repeated_once_per_further_worker(stream, num_workers):
    found = compare(stream, tagged([stream] * num_workers), num_workers=num_workers, is_complete=True)
    assert found.num_duplicated == (num_workers - 1) * len(stream)
    assert (found.first_duplicate is None) == (not stream)


@given(stream=st.lists(st.integers(0, 5).map(str), max_size=200), num_workers=st.integers(2, 4))
def test_of_unfinished_streams_common_content_is_no_repeat(stream, num_workers):
    common = stream * 2  # each content occurs twice in each worker at least
    found = compare(common, tagged([common] * num_workers), num_workers=num_workers, is_complete=False)
    assert found.num_duplicated == 0


@given(length=st.integers(1, 50), num_workers=st.integers(2, 4))
def test_of_unfinished_streams_the_same_sample_at_the_same_place_is_a_repeat(length, num_workers):
    stream = [str(i) for i in range(length)]
    found = compare(stream, tagged([stream] * num_workers), num_workers=num_workers, is_complete=False)
    assert found.num_duplicated == (num_workers - 1) * length
    assert found.first_duplicate == "0: " + " and ".join(
        f"sample 0 of worker {worker}" for worker in range(num_workers)
    )


def test_a_repeat_is_named_by_the_key_that_the_sample_carries():
    keys = {"9f2c": "shard-3/clip7", "77aa": "shard-3/clip8"}
    found = compare(["9f2c", "77aa"], tagged([["9f2c", "77aa"]] * 2, keys), num_workers=2, is_complete=True)
    assert found.first_duplicate == "shard-3/clip7: sample 0 of worker 0 and sample 0 of worker 1"


def test_content_without_a_digest_is_no_repeat():
    found = compare([None] * 3, tagged([[None] * 3] * 2), num_workers=2, is_complete=True)
    assert found.num_duplicated == 0


CODE = """
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info is not None and SHARES else (0, 1)
        for i in range(start, LENGTH, step):
            yield {"x": torch.full((3,), i), "name": f"sample {i}"}

def make():
    return DataLoader(Stream(), batch_size=4, num_workers=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "length", "num_duplicated", "is_complete"),
    [(True, 20, 0, True), (False, 10**9, 30, False)],
)
def test_real_workers_are_compared_and_ended(write_target, shares, length, num_duplicated, is_complete):
    spec = write_target(CODE.replace("SHARES", str(shares)).replace("LENGTH", str(length)))
    heard = []
    with Lab(spec, budget=Budget(60), per_sample_s=20) as lab:
        ending = lab.run(CompareStreams(num_workers=2, limit=60, seed=0), heard.append)
    assert ending.outcome == "done", ending
    (found,) = heard
    assert (found.num_duplicated, found.is_complete) == (num_duplicated, is_complete)
    assert sum(found.per_worker) == (20 if is_complete else 60)
