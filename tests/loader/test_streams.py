"""Iterable data sets: exact for the same layout, refused for another, and watched for every worker yielding it all."""

import random
import warnings

import pytest
import torch
from loader_datasets import Split, Unsplit
from torch.utils.data import DataLoader as TorchLoader

import headrace as hr
from headrace.errors import ConfigurationError, DuplicateDataWarning, SourceError, StateMismatch
from headrace.testing import nothing_left

LAYOUTS = [{}, {"num_workers": 1}, {"num_workers": 3}]


def values(loader):
    return [batch[:, 0].tolist() for batch in loader]


def loader(layout, dataset=None, **more):
    return hr.DataLoader(dataset or Split(), batch_size=3, seed=5, multiprocessing_context="fork", **layout, **more)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes:UserWarning")  # torch's, on 2 cores
def test_batches_equal_torchs(layout, drop_last):
    theirs = TorchLoader(Split(), batch_size=3, drop_last=drop_last, **layout)
    with nothing_left():
        assert values(loader(layout, drop_last=drop_last)) == values(theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_draws_repeat_with_the_seed_and_differ_between_epochs(layout):
    random.seed(3)
    a, b = loader(layout), loader(layout)
    first = torch.cat(list(a))
    assert torch.equal(first, torch.cat(list(b)))
    assert not torch.equal(first[:, 1], torch.cat(list(a))[:, 1])
    expected = random.Random(3).random()
    assert random.random() == expected, "the caller's generator is untouched"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_resume_in_the_same_layout_is_exact(layout):
    whole = torch.cat(list(loader(layout)))
    stopped = loader(layout)
    iterator = iter(stopped)
    seen = [next(iterator) for _ in range(3)]
    state = stopped.state_dict()
    iterator.close()
    resumed = loader(layout)
    resumed.load_state_dict(state)
    assert torch.equal(torch.cat([*seen, *resumed]), whole)


def test_resume_in_another_layout_is_refused_with_both_sides():
    stopped = loader({"num_workers": 2})
    next(iter(stopped))
    with pytest.raises(StateMismatch, match=r"(?s)num_workers 2.*num_workers 3"):
        loader({"num_workers": 3}).load_state_dict(stopped.state_dict())


def test_workers_that_yield_everything_are_warned_of_and_split_ones_are_not():
    with pytest.warns(DuplicateDataWarning, match=r"^workers 0 and 1 begin with the same batch"):
        list(hr.DataLoader(Unsplit(), batch_size=3, num_workers=2, multiprocessing_context="fork"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(loader({"num_workers": 2}))


def test_ranks_share_a_stream_that_splits_itself_and_are_refused_one_that_does_not():
    for num_workers in (0, 2):
        seen = []
        for rank in range(2):
            part = loader({"num_workers": num_workers}, rank=rank, world_size=2)
            seen += [value for batch in values(part) for value in batch]
        assert sorted(seen) == list(range(20))
    with pytest.raises(SourceError, match=r"^the stream Unsplit gives every rank the same samples"):
        iter(hr.DataLoader(Unsplit(), batch_size=3, rank=0, world_size=2))
    assert torch.utils.data.get_worker_info() is None


def test_what_a_stream_cannot_do_is_refused():
    for arguments in ({"shuffle": True}, {"sampler": [1]}, {"tail": "pad"}, {"on_error": hr.Skip()}):
        with pytest.raises(ConfigurationError, match=r"^an iterable data set cannot have "):
            hr.DataLoader(Split(), **arguments)
    with pytest.raises(ConfigurationError, match=r"threads"):
        hr.DataLoader(Split(), num_workers=2, runner="threads")
    with pytest.raises(TypeError, match=r"no len"):
        len(hr.DataLoader(Split()))
    with pytest.raises(ConfigurationError, match=r"^sample 0:1 cannot be replayed"):
        hr.DataLoader(Split()).replay("0:1")


def test_ids_name_worker_and_number():
    stream = loader({"num_workers": 2})
    ids = [i for _ in stream for i in stream.last.sample_ids]
    assert len(set(ids)) == 20
    assert ids[:3] == ["0:0", "0:1", "0:2"]
