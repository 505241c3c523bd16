"""A batch that is gathered at once is the batch that reading and collating gives, byte for byte."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset, TensorDataset, default_collate
from vector_containers import KINDS, NUMPY_DTYPES, TORCH_DTYPES, books, container, image, plain_collate, stages

import headrace as hr

SHAPES = ((), (1,), (3,), (0,), (2, 3), (3, 1, 2), (1, 4, 4), (2, 2, 1, 2))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(1, settings.default.max_examples // 4))  # for each of many kinds
@given(
    numpy_dtype=st.sampled_from(NUMPY_DTYPES),
    torch_dtype=st.sampled_from(TORCH_DTYPES),
    shape=st.sampled_from(SHAPES),
    num_rows=st.integers(1, 24),
    batch_size=st.integers(1, 9),
    shuffle=st.booleans(),
    tail=st.sampled_from(["partial", "drop", "pad", "carry"]),
    ranks=st.sampled_from([(0, 1), (0, 2), (1, 2), (2, 3)]),
    seed=st.integers(0, 99),
)
def test_every_container(kind, numpy_dtype, torch_dtype, shape, num_rows, batch_size, shuffle, tail, ranks, seed):
    rank, world_size = ranks
    size = max(batch_size, world_size)
    layout = {"rank": rank, "world_size": world_size}
    common = {"batch_size": size, "shuffle": shuffle, "tail": tail, "seed": seed, **layout}
    with tempfile.TemporaryDirectory() as folder:
        data = container(
            kind,
            rng=np.random.default_rng(seed),
            numpy_dtype=numpy_dtype,
            torch_dtype=torch_dtype,
            num_rows=max(num_rows, size),
            shape=shape,
            folder=Path(folder),
        )
        twin = _outcome(lambda: books(hr.DataLoader(data, **common, collate_fn=plain_collate)))
        assert _outcome(lambda: books(hr.DataLoader(data, **common))) == twin
        assert _outcome(lambda: books(hr.DataLoader(data, **common, collate_fn=default_collate))) == twin


def _outcome(run):
    """What a run gives, or the type of its error: what torch cannot join must not be joined by the short cut either."""
    try:
        with warnings.catch_warnings():
            # Torch's way makes a tensor of each row of a read-only map, and warns.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return run()
    except Exception as error:
        return "fails", isinstance(error, TypeError) or type(error).__name__ == "CollateError"


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_data_are_gathered(kind, tmp_path):
    common = {"rng": np.random.default_rng(0), "numpy_dtype": "float32", "torch_dtype": torch.float32}
    data = container(kind, **common, num_rows=9, shape=(3,), folder=tmp_path)
    for collate in (None, default_collate):
        loader = hr.DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate)
        list(loader)
        assert stages(loader) == ["read"]


def test_batches_are_torchs_own():
    data = TensorDataset(torch.arange(10.0), torch.arange(20).reshape(10, 2))
    ours = [image(list(batch)) for batch in hr.DataLoader(data, batch_size=4)]
    assert ours == [image(batch) for batch in TorchLoader(data, batch_size=4)]


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_every_runner_gathers_the_same(runner):
    data = hr.arrays(x=np.arange(40.0).reshape(20, 2), name=[f"n{row}" for row in range(20)])
    common = {"batch_size": 6, "shuffle": True, "seed": 3}
    loader = hr.DataLoader(data, **common, runner=runner, num_workers=2)
    assert books(loader) == books(hr.DataLoader(data, **common, collate_fn=plain_collate))
    assert stages(loader) == ["read"]


def test_a_gathered_batch_is_a_copy():
    values = np.zeros((8, 2))
    rows = torch.zeros(8, 2)
    for data in (hr.arrays(values), hr.arrays(rows), TensorDataset(rows), values, rows):
        for batch in hr.DataLoader(data, batch_size=8):
            (batch[0] if isinstance(batch, list) else batch).fill_(7)
    assert not values.any()
    assert not rows.any()


# What is not known to give the same goes the plain way.


class Doubling(TensorDataset):
    def __getitem__(self, index):
        return tuple(2 * value for value in super().__getitem__(index))


class Reversing(np.ndarray):
    def __getitem__(self, index):
        return super().__getitem__(-1 - index) if isinstance(index, int) else super().__getitem__(index)


class Tagged(torch.Tensor):
    pass


PLAIN = {
    "subclass of TensorDataset": Doubling(torch.arange(6.0)),
    "subclass of array": np.arange(6.0).reshape(6, 1).view(Reversing),
    "subclass of tensor": hr.arrays(torch.arange(6.0).as_subclass(Tagged)),
    "Subset of those": Subset(Doubling(torch.arange(6.0)), [3, 1, 2]),
    "tensor with a history": hr.arrays(torch.arange(6.0, requires_grad=True) * 2),
    "transposed tensor": hr.arrays(torch.arange(12.0).reshape(2, 6).t()),
    "array of text": np.array(["a", "b", "c", "d"]),
    "channels last": np.arange(6 * 3 * 2 * 2.0).reshape(6, 2, 2, 3).transpose(0, 3, 1, 2),
    "list": [1.5, 2.5, 3.5],
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_may_differ_goes_the_plain_way(name):
    data = PLAIN[name]
    loader = hr.DataLoader(data, batch_size=2, shuffle=True, seed=1)
    assert books(loader) == books(hr.DataLoader(data, batch_size=2, shuffle=True, seed=1, collate_fn=plain_collate))
    assert "collate" in stages(loader)


def test_stages_and_contracts_go_the_plain_way():
    plan = hr.arrays(x=np.arange(6.0))
    mapped = hr.DataLoader(plan.map(dict, name="copy"), batch_size=3)
    assert [batch["x"].tolist() for batch in mapped] == [[0, 1, 2], [3, 4, 5]]
    assert stages(mapped) == ["read", "copy", "collate"]
    checked = hr.DataLoader(plan, batch_size=3, contract=hr.Contract.infer(plan))
    list(checked)
    assert stages(checked) == ["read", "collate"]


def test_added_collate_rules_go_the_plain_way(monkeypatch):
    from torch.utils.data._utils.collate import default_collate_fn_map

    def negated(samples, *, collate_fn_map=None):
        return -torch.stack(samples)

    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, negated)
    (batch,) = hr.DataLoader(hr.arrays(torch.arange(3.0)), batch_size=3)
    assert batch.tolist() == [0, -1, -2]


def test_a_row_outside_is_named():
    data = Subset(TensorDataset(torch.arange(4.0)), [0, 1, 9, 2])
    with pytest.raises(IndexError) as caught:
        list(hr.DataLoader(data, batch_size=2))
    assert "sample 2" in "".join(caught.value.__notes__)
