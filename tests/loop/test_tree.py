"""What a checkpoint can hold: any data comes back as it was, and anything else is refused by its path."""

import collections
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import CheckpointError
from headrace.loop.checkpoint import files, tree

TENSORS = [
    torch.tensor(3.5),
    torch.empty(0, 3),
    torch.arange(6).reshape(2, 3).T,
    torch.tensor([True, False]),
    torch.tensor([1 + 2j]),
    torch.ones(3, dtype=torch.bfloat16),
    torch.ones(2, dtype=torch.float8_e4m3fn),
    torch.tensor([-0.0, math.nan, math.inf]),
    torch.tensor([1, 2], dtype=torch.uint16),
]
plain = (
    st.none()
    | st.booleans()
    | st.integers()  # of any size: numpy's PCG64 holds 128 bits
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.binary()
    | st.sampled_from(TENSORS)
    | st.sampled_from([np.float32(1.5), np.arange(4).reshape(2, 2), np.array(2.0), np.zeros((0, 2), np.uint64)])
    | st.sampled_from([torch.float16, torch.device("cpu"), torch.Size([2, 3])])
)
keys = st.text() | st.integers() | st.booleans() | st.tuples(st.integers(), st.text())
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.dictionaries(keys, inner).map(collections.OrderedDict)
        | st.dictionaries(keys, st.integers()).map(collections.Counter)
        | st.sets(st.integers() | st.text())
        | st.frozensets(st.integers())
        | st.lists(inner).map(lambda one: collections.deque(one, 9))
    ),
    max_leaves=12,
)


def same(one, other):
    """Equal to the last bit and of the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        return one.contiguous().flatten().view(torch.uint8).equal(other.contiguous().flatten().view(torch.uint8))
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, float):
        return one.hex() == other.hex()
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, dict):
        return list(map(repr, one)) == list(map(repr, other)) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | collections.deque):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@given(values)
def test_what_is_split_and_joined_is_what_it_was(value):
    skeleton, tensors = tree.split(value, "part")

    assert same(tree.join(json.loads(json.dumps(skeleton, allow_nan=False)), tensors), value)


@given(st.dictionaries(st.sampled_from(["model", "optimizer", "random"]), values))
def test_what_is_written_is_read_again(tmp_path_factory, parts):
    for stem in ("state", "rank-0"):
        folder = tmp_path_factory.mktemp("files")
        files.write(folder, stem, parts)

        assert same(files.read(folder, stem), parts)


def test_the_file_of_a_model_is_its_state_dict(tmp_path):
    from safetensors.torch import load_file

    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    files.write(tmp_path, "state", {"model": net.state_dict()})

    net.load_state_dict(load_file(tmp_path / "model.safetensors"), strict=True)


def test_tied_weights_are_written_once_and_views_are_kept_apart(tmp_path):
    weight = torch.arange(6.0)
    parts = {"model": {"a": weight, "b": weight, "whole": weight.view(2, 3), "half": weight[3:]}}
    files.write(tmp_path, "state", parts)

    found = files.read(tmp_path, "state")
    assert same(found, parts)
    assert found["model"]["a"] is found["model"]["b"]


class Thing:
    pass


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"a": [1, {"b": Thing()}]},
            r"part\['a'\]\[1\]\['b'\] is of type tests.loop.test_tree.Thing, which is no data",
        ),
        ({"f": len}, r"part\['f'\] is of type builtins.builtin_function_or_method"),
        ([np.array(["x"])], r"part\[0\] is an array of type <U1, which no file of tensors can hold"),
        ([torch.eye(2).to_sparse()], r"part\[0\] is a tensor of layout torch.sparse_coo"),
    ],
)
def test_what_is_no_data_is_refused_by_its_path(value, words):
    with pytest.raises(CheckpointError, match=words):
        tree.split(value, "part")


def test_what_contains_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(CheckpointError, match=r"part\[0\] contains itself"):
        tree.split(loop, "part")


def test_kinds_of_another_version_are_named():
    with pytest.raises(CheckpointError, match="of kind 'hologram', which this version does not know"):
        tree.join({"x": {"$": ["hologram", 1]}}, {})


def test_a_tensor_that_is_not_there_is_named():
    with pytest.raises(CheckpointError, match=r"a tensor 'part\.x' that its files do not hold"):
        tree.join({"x": {"$": ["tensor", "part.x"]}}, {})
