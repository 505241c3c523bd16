"""In place of torch's DataLoader nothing changes but the import: same batches, same attributes, same length."""

import copy
import inspect
import pickle

import numpy as np
import pytest
import torch
from loader_datasets import Bare, Batched, Dicts, Named, Split, Strings, Tuples
from torch.utils.data import BatchSampler, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler
from torch.utils.data import DataLoader as TorchLoader

import headrace as hr


def same(a, b):
    """True if two batches are equal in structure, type of leaves and bytes."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


CASES = {
    "tuples": lambda: (Tuples(), {"batch_size": 5}),
    "drop_last": lambda: (Tuples(), {"batch_size": 5, "drop_last": True}),
    "dicts": lambda: (Dicts(), {"batch_size": 4}),
    "named tuples": lambda: (Named(), {"batch_size": 4}),
    "bare tensors": lambda: (Bare(), {"batch_size": 4}),
    "strings": lambda: (Strings(), {"batch_size": 3}),
    "batched reads": lambda: (Batched(), {"batch_size": 6}),
    "tensor data set": lambda: (TensorDataset(torch.arange(9.0), torch.arange(9)), {"batch_size": 4}),
    "subset": lambda: (Subset(Tuples(), [3, 1, 4, 1, 5]), {"batch_size": 2}),
    "list": lambda: ([1, 2, 3, 4, 5], {"batch_size": 2}),
    "arrays": lambda: (np.arange(12).reshape(6, 2), {"batch_size": 4}),
    "default batch size": lambda: (Tuples(3), {}),
    "single samples": lambda: (Dicts(4), {"batch_size": None}),
    "collate_fn": lambda: (Tuples(), {"batch_size": 4, "collate_fn": len}),
    "sampler": lambda: (Tuples(), {"batch_size": 4, "sampler": [5, 3, 3, 0, 22]}),
    "batch sampler": lambda: (Tuples(), {"batch_sampler": BatchSampler(range(0, 20, 3), 3, drop_last=False)}),
    "ragged batch sampler": lambda: (Tuples(), {"batch_sampler": [[0], [1, 2, 3], [4, 5]]}),
    "stream": lambda: (Split(), {"batch_size": 3, "collate_fn": lambda samples: [s[0].item() for s in samples]}),
}


@pytest.mark.parametrize("case", CASES)
def test_batches_equal_torchs(case):
    dataset, arguments = CASES[case]()
    ours, theirs = hr.DataLoader(dataset, **arguments), TorchLoader(dataset, **arguments)
    expected = list(theirs)
    for _ in range(2):
        batches = list(ours)
        assert len(batches) == len(expected)
        assert all(map(same, batches, expected)), (batches[0], expected[0])
    if case != "stream":
        assert len(ours) == len(theirs)


def test_every_argument_of_torchs_constructor_is_taken():
    theirs = inspect.signature(TorchLoader.__init__).parameters
    ours = inspect.signature(hr.DataLoader.__init__).parameters
    assert set(theirs) <= set(ours)
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default, name
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert list(ours).index(name) == list(theirs).index(name), f"{name} stands elsewhere"


@pytest.mark.parametrize(
    "arguments", [{}, {"shuffle": True}, {"batch_size": None}, {"drop_last": True, "batch_size": 2}]
)
def test_attributes_of_torchs_loader_are_there(arguments):
    dataset = Tuples()
    ours, theirs = hr.DataLoader(dataset, **arguments), TorchLoader(dataset, **arguments)
    for name in vars(theirs):
        if not name.startswith("_"):
            assert hasattr(ours, name), name
    for name in ("dataset", "batch_size", "num_workers", "pin_memory", "drop_last", "timeout", "worker_init_fn"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(list(ours.sampler)) == len(list(theirs.sampler))
    if theirs.batch_sampler is not None:
        assert len(list(ours.batch_sampler)) == len(list(theirs.batch_sampler))


def test_the_sampler_attribute_lists_the_next_epoch():
    loader = hr.DataLoader(range(20), batch_size=3, shuffle=True, seed=4)
    listed = list(loader.sampler)
    batches = list(loader.batch_sampler)
    ids = [i for _ in loader for i in loader.last.sample_ids]
    assert ids == listed == [i for batch in batches for i in batch]


@pytest.mark.parametrize(
    "make_sampler",
    [
        lambda: SubsetRandomSampler(range(10)),
        lambda: SubsetRandomSampler(range(10), generator=torch.Generator().manual_seed(1)),
        lambda: WeightedRandomSampler([1.0, 2.0, 3.0] * 7, num_samples=15),
        lambda: torch.utils.data.RandomSampler(range(20), replacement=True),
    ],
)
def test_torchs_samplers_are_new_in_each_epoch_and_found_again_on_resume(make_sampler):
    def loader():
        return hr.DataLoader(Tuples(), batch_size=4, sampler=make_sampler(), seed=9)

    torch.manual_seed(123)
    state_before = torch.get_rng_state()
    whole = loader()
    first = [list(whole.last.sample_ids) for _ in whole]
    second = [list(whole.last.sample_ids) for _ in whole]
    assert first != second
    assert torch.equal(torch.get_rng_state(), state_before), "the caller's generator is untouched"

    stopped = loader()
    list(stopped)
    iterator = iter(stopped)
    next(iterator)
    state = stopped.state_dict()
    torch.manual_seed(77)  # another process has other global generators
    resumed = loader()
    resumed.load_state_dict(state)
    assert [list(resumed.last.sample_ids) for _ in resumed] == second[1:]


def test_distributed_sampler_is_told_the_epoch_unless_the_user_does():
    sampler = torch.utils.data.DistributedSampler(range(20), num_replicas=2, rank=0, shuffle=True)
    loader = hr.DataLoader(Tuples(20), batch_size=5, sampler=sampler)
    epochs = [[i for _ in loader for i in loader.last.sample_ids] for _ in range(2)]
    assert epochs[0] != epochs[1]
    sampler.set_epoch(0)
    assert [i for _ in loader for i in loader.last.sample_ids] == epochs[0]


def test_batches_carry_identity_and_stay_what_they_are():
    for dataset, kind in ((Dicts(), dict), (Tuples(), list)):
        loader = hr.DataLoader(dataset, batch_size=4)
        batch = next(iter(loader))
        assert isinstance(batch, kind)
        assert batch.sample_ids == (0, 1, 2, 3) == loader.last.sample_ids
        assert batch.cursor.consumed == 4
        assert type(pickle.loads(pickle.dumps(batch))) is kind
        assert type(copy.deepcopy(batch)) is kind
        with pytest.raises(AttributeError, match=r"^this is a copy of a batch"):
            type(batch)(batch).sample_ids


def test_worker_info_and_worker_init_fn_are_as_in_torch():
    class Info(Tuples):
        def __getitem__(self, index):
            info = torch.utils.data.get_worker_info()
            return torch.tensor([info.id, info.num_workers, len(info.dataset), self.marked])

    dataset = Info()

    def mark(worker):
        torch.utils.data.get_worker_info().dataset.marked = worker + 100

    loader = hr.DataLoader(dataset, batch_size=1, num_workers=2, worker_init_fn=mark, multiprocessing_context="fork")
    rows = torch.cat(list(loader))
    assert rows[:, 1:3].unique(dim=0).tolist() == [[2, 23]]
    assert torch.equal(rows[:, 3], rows[:, 0] + 100)
    assert torch.utils.data.get_worker_info() is None
