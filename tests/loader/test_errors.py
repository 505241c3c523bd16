"""A failure names the sample and the place, keeps its type, and disturbs no other sample."""

import dataclasses
import os
import signal

import numpy as np
import pytest
import torch
from loader_datasets import Broken, Dicts, Gaps, Liar, Strings, Tuples, TwoArguments, without_none

import headrace as hr
from headrace.errors import (
    CollateError,
    ConfigurationError,
    ContractViolation,
    EmptyBatch,
    SourceError,
    StateMismatch,
    TooManyRefused,
    WorkerDied,
)
from headrace.testing import nothing_left

LAYOUTS = [{}, {"num_workers": 2, "runner": "threads"}, {"num_workers": 2, "multiprocessing_context": "fork"}]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_users_exception_keeps_its_type_and_gains_the_place(layout):
    loader = hr.DataLoader(Broken(), batch_size=4, seed=7, **layout)
    with nothing_left(), pytest.raises(TwoArguments, match=r"(?m)^cannot read row 5$") as caught:
        list(loader)
    note = "\n".join(caught.value.__notes__)
    assert "where: sample 5 | stage read | epoch 0, position 5 | rank 0" in note
    assert ("worker" in note) == bool(layout)
    assert "loader.replay(5, epoch=0)" in note
    assert "headrace replay TARGET '5' --epoch 0 --seed 7" in note
    assert caught.value.headrace_where.sample_id == 5
    assert caught.value.index == 5


def test_replay_raises_the_same_failure_here():
    loader = hr.DataLoader(Broken(), batch_size=4)
    with pytest.raises(TwoArguments, match=r"(?m)^cannot read row 5$") as caught:
        loader.replay(5)
    assert "sample 5" in caught.value.__notes__[0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_skip_leaves_out_the_sample_and_moves_no_other(layout):
    loader = hr.DataLoader(Broken(bad=(5, 11)), batch_size=4, shuffle=True, seed=1, on_error=hr.Skip(), **layout)
    whole = hr.DataLoader(Tuples(), batch_size=4, shuffle=True, seed=1)
    expected = [[i for i in whole.last.sample_ids if i not in (5, 11)] for _ in whole]
    assert [list(loader.last.sample_ids) for _ in loader] == expected
    assert sorted(refusal.sample_id for refusal in loader.quarantine) == [5, 11]
    assert loader.quarantine[0].error.startswith("TwoArguments: cannot read row")
    assert (loader.ledger.delivered, loader.ledger.skipped) == (21, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_replace_delivers_a_keyed_stand_in_and_flags_it(layout):
    def loader(**more):
        return hr.DataLoader(
            Broken(bad=(5, 11)), batch_size=4, shuffle=True, seed=1, on_error=hr.Replace(), **layout, **more
        )

    first = loader()
    ids = [list(first.last.sample_ids) for _ in first]
    assert [len(batch) for batch in ids] == [4, 4, 4, 4, 4, 3]
    replaced = {refusal.sample_id: refusal.replaced_by for refusal in first.quarantine}
    assert set(replaced) == {5, 11}
    assert not set(replaced.values()) & {5, 11}
    assert (first.ledger.delivered, first.ledger.skipped, first.ledger.replaced) == (21, 2, 2)
    again = hr.DataLoader(Broken(bad=(5, 11)), batch_size=4, shuffle=True, seed=1, on_error=hr.Replace())
    assert [list(again.last.sample_ids) for _ in again] == ids


def test_replace_raises_the_samples_own_failure_when_no_stand_in_loads():
    loader = hr.DataLoader(Broken(4, bad=(0, 1, 2, 3)), on_error=hr.Replace())
    with pytest.raises(TwoArguments):
        list(loader)


def test_budgets():
    by_count = hr.DataLoader(Broken(bad=range(3)), batch_size=4, on_error=hr.Skip(max_count=2, max_rate=None))
    with pytest.raises(TooManyRefused, match=r"^3 of 4 samples were refused; the policy allows max_count=2"):
        list(by_count)
    by_rate = hr.DataLoader(Broken(400, bad=range(0, 400, 10)), batch_size=50, on_error=hr.Skip(max_rate=0.05))
    with pytest.raises(TooManyRefused, match=r"^10 of 100 samples were refused; the policy allows max_rate=0.05"):
        list(by_rate)
    on_probation = hr.DataLoader(Broken(60, bad=range(0, 60, 10)), batch_size=50, on_error=hr.Skip(max_rate=0.05))
    assert len(list(on_probation)) == 2
    for wrong in ({"max_rate": 2}, {"max_count": -1}):
        with pytest.raises(ConfigurationError):
            hr.Skip(**wrong)


def test_a_batch_of_refused_samples_is_passed_over_alone_and_refused_in_company():
    alone = hr.DataLoader(Broken(12, bad=range(4)), batch_size=4, on_error=hr.Skip(max_rate=None))
    assert len(list(alone)) == 2
    company = hr.DataLoader(
        Broken(12, bad=range(4)), batch_size=4, on_error=hr.Skip(max_rate=None), rank=0, world_size=2
    )
    with pytest.raises(EmptyBatch, match=r"^every sample of this rank's part of batch 0 was refused"):
        list(company)


def test_samples_that_do_not_join_are_named():
    odd = [torch.zeros(3, 16, 16)] * 3 + [torch.zeros(1, 16, 16)]
    with pytest.raises(CollateError, match=r"3") as caught:
        list(hr.DataLoader(odd, batch_size=4))
    assert "sample 3" in str(caught.value)
    assert "[1, 16, 16]" in str(caught.value) or "(1, 16, 16)" in str(caught.value)


def test_a_users_collate_keeps_its_exception_and_gains_the_ids():
    def fails(samples):
        raise TwoArguments("no", len(samples))

    with pytest.raises(TwoArguments) as caught:
        list(hr.DataLoader(Tuples(), batch_size=4, collate_fn=fails))
    note = "\n".join(caught.value.__notes__)
    assert "stage collate" in note
    assert "0, 1, 2, 3" in note


def test_nones_left_out_by_collate_are_booked_as_refused():
    loader = hr.DataLoader(Gaps(10), batch_size=4, collate_fn=without_none)
    assert [list(loader.last.sample_ids) for _ in loader] == [[0, 1, 2], [4, 5, 6], [8, 9]]
    assert [refusal.sample_id for refusal in loader.quarantine] == [3, 7]
    assert (loader.ledger.delivered, loader.ledger.skipped) == (8, 2)


def test_none_without_such_a_collate_is_named():
    with pytest.raises(CollateError) as caught:
        list(hr.DataLoader(Gaps(10), batch_size=4))
    assert "sample 3" in str(caught.value)
    assert "None" in str(caught.value)


def test_contract_breaches_are_raised_by_sample_and_can_be_skipped():
    contract = hr.Contract.infer(Tuples())
    dataset = Tuples()
    dataset.images[6] = float("nan")
    with pytest.raises(ContractViolation) as caught:
        list(hr.DataLoader(dataset, batch_size=4, contract=contract))
    assert "sample 6" in str(caught.value)
    skipping = hr.DataLoader(dataset, batch_size=4, contract=contract, on_error=hr.Skip(max_rate=None))
    assert 6 not in [i for _ in skipping for i in skipping.last.sample_ids]


def drop_odd(row):
    return None if row["x"] % 2 else row


def test_a_stage_may_filter_only_where_the_contract_says_so():
    plan = hr.arrays(x=np.arange(10)).map(drop_odd)
    strict = hr.Contract.infer(hr.arrays(x=np.arange(10)))
    with pytest.raises(ContractViolation, match=r"may_filter") as caught:
        list(hr.DataLoader(plan, batch_size=4, contract=strict))
    assert caught.value.headrace_where.sample_id == 1
    lenient = dataclasses.replace(strict, may_filter=True)
    loader = hr.DataLoader(plan, batch_size=4, contract=lenient)
    assert [batch["x"].tolist() for batch in loader] == [[0, 2], [4, 6], [8]]
    assert [refusal.sample_id for refusal in loader.quarantine] == [1, 3, 5, 7, 9]
    assert (loader.ledger.delivered, loader.ledger.skipped) == (5, 5)


def test_the_contracts_rule_for_incomplete_samples():
    class Incomplete(Dicts):
        def __getitem__(self, index):
            return super().__getitem__(index) | ({"image": None} if index == 3 else {})

    contract = hr.Contract.infer(Dicts())
    with pytest.raises(ContractViolation):
        list(hr.DataLoader(Incomplete(), batch_size=4, contract=contract))
    skipping = hr.DataLoader(Incomplete(), batch_size=4, contract=dataclasses.replace(contract, incomplete="skip"))
    assert 3 not in [i for _ in skipping for i in skipping.last.sample_ids]
    replacing = hr.DataLoader(Incomplete(), batch_size=4, contract=dataclasses.replace(contract, incomplete="replace"))
    assert sum(len(replacing.last.sample_ids) for _ in replacing) == 23
    assert replacing.ledger.replaced == 1


def test_a_data_set_of_another_size_than_its_contract_is_refused():
    with pytest.raises(ContractViolation, match=r"23"):
        hr.DataLoader(Tuples(24), contract=hr.Contract.infer(Tuples(23)))


class Killer(Tuples):
    def __getitem__(self, index):
        if index == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


def test_a_killed_worker_names_the_sample_in_hand():
    loader = hr.DataLoader(Killer(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    with nothing_left(), pytest.raises(WorkerDied) as caught:
        list(loader)
    assert "sample 6" in str(caught.value)
    assert "SIGKILL" in str(caught.value)


# Bad input.


def test_empty_data_set():
    for empty in ([], Tuples(0)):
        with pytest.raises(SourceError, match=r"^the data set is empty: its length is 0"):
            hr.DataLoader(empty)


def test_data_set_shorter_than_a_batch():
    with pytest.raises(ConfigurationError, match=r"^no batches: 12 samples, batch_size=1,024"):
        hr.DataLoader(Tuples(12), batch_size=1024, drop_last=True)
    assert len(list(hr.DataLoader(Tuples(12), batch_size=1024))) == 1


def test_len_that_lies():
    with pytest.raises(IndexError) as caught:
        list(hr.DataLoader(Liar(), batch_size=4))
    note = "\n".join(caught.value.__notes__)
    assert "sample 23" in note
    assert "look at __len__: the data set says it has 27 samples" in note


def test_batch_of_strings_stays_a_list():
    assert next(iter(hr.DataLoader(Strings(), batch_size=3))) == ["sentence 0", "sentence 1", "sentence 2"]


def test_state_of_another_data_set_is_refused_with_both_sides():
    a, b = hr.DataLoader(Tuples(23), batch_size=4), hr.DataLoader(Tuples(24), batch_size=4)
    next(iter(a))
    with pytest.raises(StateMismatch) as caught:
        b.load_state_dict(a.state_dict())
    assert "23" in str(caught.value)
    assert "24" in str(caught.value)
    shuffled = hr.DataLoader(Tuples(23), batch_size=4, shuffle=True)
    with pytest.raises(StateMismatch, match="order"):
        shuffled.load_state_dict(a.state_dict())
    with pytest.raises(StateMismatch):
        a.load_state_dict({"format": "something else"})


def test_state_of_a_sampler_that_lists_otherwise_is_refused():
    def loader(order):
        return hr.DataLoader(Tuples(), batch_size=2, sampler=order)

    a, b = loader([1, 2, 3, 4]), loader([1, 2, 4, 3])
    next(iter(a))
    with pytest.raises(StateMismatch):
        b.load_state_dict(a.state_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, r"^batch_size=0: "),
        ({"num_workers": -1}, r"^num_workers=-1: "),
        ({"num_workers": "auto", "runner": "threads"}, r"^num_workers='auto' excludes runner"),
        ({"runner": "thread"}, r"did you mean 'threads'"),
        ({"runner": "threads"}, r"^runner='threads' needs workers"),
        ({"tail": "dorp"}, r"did you mean 'drop'"),
        ({"drop_last": True, "tail": "pad"}, r"contradict"),
        ({"sampler": [1], "shuffle": True}, r"^sampler and shuffle exclude"),
        ({"batch_sampler": [[1]], "batch_size": 4}, r"^batch_sampler excludes batch_size"),
        ({"rank": 1}, r"^rank=1 and world_size=None"),
        ({"rank": 2, "world_size": 2, "batch_size": 4}, r"rank"),
        ({"batch_size": 2, "rank": 0, "world_size": 3}, r"batch_size"),
        ({"on_error": "skp"}, r"did you mean 'skip'"),
        ({"seed": "7"}, r"^seed='7'"),
        ({"sampler": [99]}, r"99"),
        ({"memory_limit": 2**20}, r"^memory_limit bounds the memory that worker processes share"),
        ({"memory_limit": -1, "num_workers": 1}, r"^memory_limit=-1: bytes for all batches in flight"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_any_worker_starts(arguments, message):
    with pytest.raises((ConfigurationError, SourceError), match=message):
        iter(hr.DataLoader(Tuples(), **arguments))


def test_a_memory_limit_too_small_for_the_batches_in_flight_says_which_is_enough():
    loader = hr.DataLoader([torch.zeros(1 << 20)] * 8, batch_size=2, num_workers=1, memory_limit=2**20)
    with pytest.raises(ConfigurationError, match=r"^memory_limit=1,048,576 bytes does not hold the batches in flight"):
        list(loader)
    assert len(list(hr.DataLoader([torch.zeros(1 << 10)] * 8, batch_size=2, num_workers=1, memory_limit=2**26))) == 4


def test_a_sampler_of_one_rank_is_not_split_again():
    sampler = torch.utils.data.DistributedSampler(range(20), num_replicas=2, rank=0)
    with pytest.raises(ConfigurationError, match=r"^the sampler already splits over 2 ranks"):
        hr.DataLoader(Tuples(20), batch_size=4, sampler=sampler, rank=0, world_size=2)


def test_something_that_is_no_data_set_is_refused():
    with pytest.raises(ConfigurationError):
        hr.DataLoader(42)


def test_arrays_shares_no_memory_trap():
    plan = hr.arrays(np.arange(10.0))
    batch = next(iter(hr.DataLoader(plan, batch_size=4)))
    batch.zero_()
    assert next(iter(hr.DataLoader(plan, batch_size=4))).tolist() == [0, 1, 2, 3]
