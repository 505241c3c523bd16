"""Shares are torch's own, and what is lost is counted exactly."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset, get_worker_info

from headrace.doctor.made_up import loader
from headrace.doctor.walks.field_digests import digest_fields, whole_digest
from headrace.doctor.walks.loader_walk import Pass
from headrace.doctor.walks.shares import deal_out, stream_shares


def walked(streams, outcome="done"):
    journals = [
        [
            *({"at": "end", "index": place, "fields": digest_fields(value)} for place, value in enumerate(stream)),
            {"at": "exhausted"},
        ]
        for stream in streams
    ]
    return Pass(outcome=outcome, journals=journals)


def single(values):
    return [whole_digest(digest_fields(value)) for value in values]


@given(num=st.integers(1, 60), num_workers=st.integers(1, 4), lost=st.integers(0, 5), size=st.integers(1, 7))
def test_what_no_worker_yields_is_missing_and_what_each_drops_is_counted(num, num_workers, lost, size):
    values = [value % 7 for value in range(num)]
    kept = values[: max(0, num - lost)]
    streams = [kept[worker::num_workers] for worker in range(num_workers)]
    facts = loader(is_iterable=True, batch_size=size, drop_last=True, num_workers=num_workers)
    found = stream_shares(walked(streams), [single(values)] * 2, facts, num_workers=num_workers)
    assert found.num_missing == num - len(kept)
    assert found.per_worker == tuple(map(len, streams))
    assert found.num_dropped == len(kept) - sum(len(stream) // size * size for stream in streams)
    assert found.num_dropped_single == num % size


def test_contents_that_change_from_walk_to_walk_are_not_compared():
    facts = loader(is_iterable=True, num_workers=2)
    found = stream_shares(walked([[1], [2]]), [single([1, 2, 3]), single([4, 5, 6])], facts, num_workers=2)
    assert (found.num_single, found.num_missing) == (3, None)
    found = stream_shares(walked([[1], [2]]), [single([1, 2, 3]), single([4, 5])], facts, num_workers=2)
    assert (found.num_single, found.num_missing) == (None, None)
    found = stream_shares(walked([[1], [2]], "limit"), [None, None], facts, num_workers=2)
    assert not found.is_complete


def who(samples):
    return get_worker_info().id, len(samples)


def test_batches_are_dealt_out_as_torch_does_it():
    sizes = [5, 1, 4, 2, 3, 3, 6]  # two workers: torch warns of more than there are cores
    rows = iter(range(sum(sizes)))
    batches = [[next(rows) for _ in range(size)] for size in sizes]
    data = TensorDataset(torch.arange(sum(sizes)))
    held = DataLoader(data, batch_sampler=batches, num_workers=2, collate_fn=who)
    truth = [0, 0]
    for worker, number in held:
        truth[worker] += number
    assert deal_out(sizes, loader(num_workers=2), is_complete=True).per_worker == tuple(truth)
